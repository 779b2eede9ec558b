package e2e

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	bytewise "encoding/binary"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
)

// internetVar tells the process of a test that it is the internet: it has a network
// namespace and mounts of its own.
const internetVar = "E2E_INTERNET"

// An internet is what a machine in a namespace of its own sees of the world: servers
// at public and private addresses, one resolver, and somebody who listens on the line.
type internet struct {
	t       *testing.T
	machine *os.Process // holds the network namespace of the machine
	ca      string      // file of the certificate that the servers are known by
	etc     string      // what the machine has in place of /etc

	mu        sync.Mutex
	asked     []string         // the names that the resolver was asked for
	packets   []netip.AddrPort // where the machine sent any
	datagrams int              // those that came to the server for them
}

// The addresses of the internet.
const (
	resolverAt = "9.9.9.9"
	goodAt     = "93.184.216.34"
	evilAt     = "93.184.216.35"
	portAt     = "93.184.216.36"
	privateAt  = "10.1.2.3"
	databaseAt = "10.1.2.4"
	six        = "2606:2800:220:1::1"
)

// zone is what the resolver knows.
var zone = map[string][]string{
	"good.example": {goodAt}, "port.example": {portAt}, "a.wild.example": {goodAt}, "bad.wild.example": {goodAt}, "wild.example": {goodAt},
	"evil.example": {evilAt}, "private.example": {privateAt}, "db.example": {databaseAt}, "loop.example": {"127.0.0.1"}, "six.example": {six},
	"metadata.example": {"169.254.169.254"}, "both.example": {privateAt, goodAt}, "alias.example": {"good.example."}, "trap.example": {"private.example."},
}

// elsewhere runs the test again in a process that is the internet, and reports
// whether that was done: there it is not.
func elsewhere(t *testing.T) bool {
	t.Helper()
	if os.Getenv(internetVar) != "" {
		return false
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), internetVar+"=1", "E2E_BINARY="+binary)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if cmd.Process == nil {
		t.Skip("no namespaces for the test: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(out, []byte("--- SKIP: "+t.Name()+" ")) {
		t.SkipNow()
	}
	return true
}

// newInternet makes it, with a machine in it.
func newInternet(t *testing.T) *internet {
	t.Helper()
	for _, program := range []string{"ip", "nsenter", "setpriv"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("the test makes its network with it: ", err)
		}
	}
	n := &internet{t: t}
	sleeper := exec.Command("sleep", "600")
	sleeper.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := sleeper.Start(); err != nil {
		t.Skip("no network namespace for the machine: ", err)
	}
	n.machine = sleeper.Process
	t.Cleanup(func() { sleeper.Process.Kill(); sleeper.Wait() })
	n.wire()
	n.mount()
	n.serve()
	go n.listen()
	return n
}

// wire makes the line between the machine and the internet.
func (n *internet) wire() {
	n.t.Helper()
	pid := strconv.Itoa(n.machine.Pid)
	n.ip("link set lo up")
	for _, at := range []string{resolverAt, goodAt, evilAt, portAt, privateAt, databaseAt, "169.254.169.254"} {
		n.ip("addr add " + at + "/32 dev lo")
	}
	n.ip("link add line type veth peer name eth0 netns " + pid)
	n.ip("addr add 93.184.200.1/24 dev line")
	n.ip("link set line up")
	inside := "nsenter --net=/proc/" + pid + "/ns/net "
	for _, words := range []string{"link set lo up", "addr add 93.184.200.2/24 dev eth0", "link set eth0 up", "route add default via 93.184.200.1"} {
		n.sh(inside + "ip " + words)
	}
	if exec.Command("ip", "addr", "add", six+"/128", "dev", "lo").Run() == nil {
		n.ip("addr add 2606:2800:200::1/64 dev line nodad")
		n.sh(inside + "ip addr add 2606:2800:200::2/64 dev eth0 nodad")
		n.sh(inside + "ip route add default via 2606:2800:200::1")
	}
}

func (n *internet) ip(words string) { n.t.Helper(); n.sh("ip " + words) }

func (n *internet) sh(line string) {
	n.t.Helper()
	if out, err := exec.Command("sh", "-c", line).CombinedOutput(); err != nil {
		n.t.Skipf("%s: %v\n%s", line, err, out)
	}
}

// mount puts copies in the place of /etc and /run, so that names can be changed.
func (n *internet) mount() {
	n.t.Helper()
	n.etc = filepath.Join(n.t.TempDir(), "etc")
	_ = exec.Command("cp", "-a", "/etc", n.etc).Run() // what may not be read is not needed
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		n.t.Skip("no mounts of the test's own: ", err)
	}
	if err := unix.Mount(n.etc, "/etc", "", unix.MS_BIND, ""); err != nil {
		n.t.Skip("no /etc of the test's own: ", err)
	}
	if err := unix.Mount("tmpfs", "/run", "tmpfs", 0, "mode=755"); err != nil {
		n.t.Skip("no /run of the test's own: ", err)
	}
	n.put("/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n"+goodAt+" hosts.example\n"+evilAt+" unnamed.example\n")
	n.resolvConf(false)
}

// resolvConf tells the machine of its resolver, perhaps by a link, as systemd does.
func (n *internet) resolvConf(link bool) {
	n.t.Helper()
	const behind = "/run/systemd/resolve/stub-resolv.conf"
	_ = os.Remove("/etc/resolv.conf")
	file := "/etc/resolv.conf"
	if link {
		file = behind
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			n.t.Fatal(err)
		}
		if err := os.Symlink(".."+behind, "/etc/resolv.conf"); err != nil {
			n.t.Fatal(err)
		}
	}
	n.put(file, "nameserver "+resolverAt+"\nsearch wild.example\noptions timeout:2 attempts:1\n")
}

func (n *internet) put(path, text string) {
	n.t.Helper()
	_ = os.Remove(path)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		n.t.Fatal(err)
	}
}

// serve starts the servers.
func (n *internet) serve() {
	n.t.Helper()
	say := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, text) })
	}
	repo := n.repository()
	good := http.NewServeMux()
	good.Handle("/", say("this is good"))
	good.Handle("/repo.git/", http.StripPrefix("/repo.git/", http.FileServer(http.Dir(repo))))
	for at, handler := range map[string]http.Handler{
		goodAt + ":80": good, goodAt + ":8443": say("this is the port"), portAt + ":8443": say("this is the port"), evilAt + ":80": say("this is evil"), privateAt + ":80": say("this is private"),
		databaseAt + ":5432": say("this is the database"), "169.254.169.254:80": say("this is metadata"), "[" + six + "]:80": say("this is six"),
	} {
		if listener := n.listener(at); listener != nil {
			go http.Serve(listener, handler)
		}
	}
	secure := httptest.NewUnstartedServer(good)
	secure.Listener = n.listener(goodAt + ":443")
	secure.TLS = &tls.Config{Certificates: []tls.Certificate{n.certificate("good.example")}}
	secure.StartTLS()
	n.t.Cleanup(secure.Close)
	names, err := net.ListenPacket("udp", resolverAt+":53")
	if err != nil {
		n.t.Fatal(err)
	}
	go n.resolve(names)
	datagrams, err := net.ListenPacket("udp", goodAt+":9999")
	if err != nil {
		n.t.Fatal(err)
	}
	go func() {
		for buf := make([]byte, 64); ; {
			if _, _, err := datagrams.ReadFrom(buf); err != nil {
				return
			}
			n.mu.Lock()
			n.datagrams++
			n.mu.Unlock()
		}
	}()
}

func (n *internet) listener(at string) net.Listener {
	listener, err := net.Listen("tcp", at)
	if err != nil && strings.HasPrefix(at, "[") {
		n.t.Log("no IPv6 here: ", err)
		return nil
	} else if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { listener.Close() })
	return listener
}

// repository is one that git clones over plain files.
func (n *internet) repository() string {
	dir := n.t.TempDir()
	n.sh("cd " + dir + " && git init -q --bare . && w=$(mktemp -d) && git -c safe.directory='*' clone -q " + dir + " $w 2>/dev/null && cd $w && " +
		"echo cloned > file && git add file && git -c user.name=a -c user.email=a@b commit -q -m one && git push -q origin HEAD && cd " + dir + " && git update-server-info && rm -rf $w")
	return dir
}

// certificate makes one that signs itself, and its file for clients.
func (n *internet) certificate(name string) tls.Certificate {
	n.t.Helper()
	dir := n.t.TempDir()
	n.sh("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=" + name +
		" -addext subjectAltName=DNS:" + name + " -keyout " + dir + "/key.pem -out " + dir + "/cert.pem")
	cert, err := tls.LoadX509KeyPair(dir+"/cert.pem", dir+"/key.pem")
	if err != nil {
		n.t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		n.t.Fatal(err)
	}
	n.ca = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: parsed.Raw}))
	return cert
}

// resolve answers questions for names.
func (n *internet) resolve(conn net.PacketConn) {
	buf := make([]byte, 2048)
	for {
		size, from, err := conn.ReadFrom(buf)
		if err != nil {
			return
		}
		var query dnsmessage.Message
		if query.Unpack(buf[:size]) != nil || len(query.Questions) != 1 {
			continue
		}
		n.mu.Lock()
		n.asked = append(n.asked, strings.TrimSuffix(query.Questions[0].Name.String(), "."))
		n.mu.Unlock()
		query.Response, query.Authoritative, query.RecursionAvailable, query.Additionals = true, true, true, nil
		n.records(&query, query.Questions[0].Name)
		if packed, err := query.Pack(); err == nil {
			_, _ = conn.WriteTo(packed, from)
		}
	}
}

// records adds what the zone has for a name, aliases followed.
func (n *internet) records(m *dnsmessage.Message, name dnsmessage.Name) {
	known, ok := zone[strings.TrimSuffix(strings.ToLower(name.String()), ".")]
	if !ok {
		m.RCode = dnsmessage.RCodeNameError
		return
	}
	head := dnsmessage.ResourceHeader{Name: name, Class: dnsmessage.ClassINET, TTL: 5}
	for _, value := range known {
		addr, err := netip.ParseAddr(value)
		switch {
		case err != nil:
			target := dnsmessage.MustNewName(value)
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.CNAMEResource{CNAME: target}})
			n.records(m, target)
		case addr.Is4() && m.Questions[0].Type == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: addr.As4()}})
		case addr.Is6() && m.Questions[0].Type == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: addr.As16()}})
		}
	}
}

// listen notes where the packets go that come from the machine.
func (n *internet) listen() {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		n.t.Error(err)
		return
	}
	line, err := net.InterfaceByName("line")
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: 0x0300, Ifindex: line.Index}) // every protocol
	}
	if err != nil {
		n.t.Error(err)
		return
	}
	for buf := make([]byte, 256); ; {
		size, from, err := unix.Recvfrom(fd, buf, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return
		}
		if link, ok := from.(*unix.SockaddrLinklayer); ok && link.Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		if to, ok := destination(buf[:size]); ok {
			n.mu.Lock()
			n.packets = append(n.packets, to)
			n.mu.Unlock()
		}
	}
}

// destination is where a packet of TCP or UDP goes; port 0 for any other protocol.
func destination(packet []byte) (netip.AddrPort, bool) {
	switch {
	case len(packet) >= 24 && packet[0]>>4 == 4:
		to := netip.AddrFrom4([4]byte(packet[16:20]))
		at := int(packet[0]&15) * 4
		if proto := packet[9]; (proto == unix.IPPROTO_TCP || proto == unix.IPPROTO_UDP) && len(packet) >= at+4 {
			return netip.AddrPortFrom(to, bytewise.BigEndian.Uint16(packet[at+2:])), true
		}
		return netip.AddrPortFrom(to, 0), true
	case len(packet) >= 44 && packet[0]>>4 == 6:
		to := netip.AddrFrom16([16]byte(packet[24:40]))
		if proto := packet[6]; proto == unix.IPPROTO_TCP || proto == unix.IPPROTO_UDP {
			return netip.AddrPortFrom(to, bytewise.BigEndian.Uint16(packet[42:])), true
		}
		return netip.AddrPortFrom(to, 0), !to.IsMulticast() && to.Is6() && !to.IsLinkLocalUnicast() && packet[6] != unix.IPPROTO_ICMPV6
	}
	return netip.AddrPort{}, false
}

// forget begins the notes anew, once nothing is on its way any more.
func (n *internet) forget() {
	time.Sleep(50 * time.Millisecond) // a packet that comes later can only fail the test
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked, n.packets, n.datagrams = nil, nil, 0
}

// A guest is a user of the machine.
type guest struct {
	name     string
	uid      int
	home     string
	dir      string // the workspace
	resolves bool   // by a link, as systemd has it
}

// command is a program on the machine.
func (n *internet) command(g guest, args ...string) *exec.Cmd {
	words := []string{"--net=/proc/" + strconv.Itoa(n.machine.Pid) + "/ns/net", "--"}
	if g.uid != os.Getuid() {
		id := strconv.Itoa(g.uid)
		words = append(words, "setpriv", "--reuid", id, "--regid", id, "--clear-groups")
	}
	cmd := exec.Command("nsenter", append(append(words, binary), args...)...)
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "HOME="+g.home, "XDG_CACHE_HOME="+g.home+"/cache", "TMPDIR=/tmp", internetVar+"=")
	return cmd
}
