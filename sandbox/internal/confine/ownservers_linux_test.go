//go:build amd64 || arm64

package confine

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/broker"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/broker/listeners"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/threads"
	"golang.org/x/sys/unix"
)

func init() {
	probeTable["dial-link"] = escape{try: dialByLink}
}

// linkNetwork has a probe connect to an IPv6 address with the number of a link, which the
// kernel ignores for addresses that are not of one.
const linkNetwork = "by the number of a link"

func dialByLink() error {
	to, err := netip.ParseAddrPort(os.Getenv("PROBE_ADDRESS"))
	if err != nil {
		return err
	}
	link, err := net.InterfaceByName(to.Addr().Zone())
	if err != nil {
		return err
	}
	s, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	return unix.Connect(s, &unix.SockaddrInet6{Addr: to.Addr().As16(), Port: int(to.Port()), ZoneId: uint32(link.Index)})
}

// TestOwnServersAreOutOfReach: a command whose network is open reaches every
// server but the one that runs it, by whatever name.
func TestOwnServersAreOutOfReach(t *testing.T) {
	p := newPlace(t)
	exe, err := os.Executable()
	must(t, err)
	policy := p.policy()
	policy.Network = true
	tcp, err := net.Listen("tcp", ":0")
	must(t, err)
	defer tcp.Close()
	_, port, _ := net.SplitHostPort(tcp.Addr().String())
	file := filepath.Join(p.ws, "s.sock")
	local, err := net.Listen("unix", file)
	must(t, err)
	defer local.Close()
	must(t, os.Symlink("s.sock", filepath.Join(p.ws, "link.sock")))
	must(t, os.Link(file, filepath.Join(p.ws, "hard.sock")))
	targets := map[string]string{"s.sock": "unix", "link.sock": "unix", "hard.sock": "unix"}
	hosts := []string{"127.0.0.1", "127.9.9.9", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "::ffff:0.0.0.0"}
	addrs, err := net.InterfaceAddrs()
	must(t, err)
	for _, a := range addrs {
		if ip := a.(*net.IPNet).IP; !ip.IsLinkLocalUnicast() {
			hosts = append(hosts, ip.String())
		}
	}
	for _, host := range hosts {
		targets[net.JoinHostPort(host, port)] = "tcp"
		if ip := netip.MustParseAddr(host); !ip.IsUnspecified() {
			targets[net.JoinHostPort(netip.AddrFrom16(ip.As16()).WithZone("lo").String(), port)] = linkNetwork
		}
	}
	for name, without := range map[string]kernel.Missing{"here": {}, "no duplicates": {GetFD: true}} {
		c := confiner(t, policy, without)
		reaches := func(network, address string) bool {
			cmd := exec.Command(exe)
			cmd.Dir = p.ws
			probe := "dial"
			if network == linkNetwork {
				probe = "dial-link"
			}
			cmd.Env = append(os.Environ(), probeVar+"="+probe, "PROBE_NETWORK="+network, "PROBE_ADDRESS="+address)
			return runIn(c, cmd) == nil
		}
		var reached []string
		for address, network := range targets {
			if reaches(network, address) {
				reached = append(reached, address)
			} else {
				t.Logf("%s: %s cannot be reached anyway", name, address)
			}
		}
		if len(reached) < 6 {
			t.Errorf("%s: only %v can be reached: nothing is proven", name, reached)
		}
		forgetTCP, forgetUnix := listeners.Own(tcp.Addr()), listeners.Own(local.Addr())
		for _, address := range reached {
			if reaches(targets[address], address) {
				t.Errorf("%s: a command connects to %s", name, address)
			}
		}
		if other := serve(t, "tcp", "127.0.0.1:0"); !reaches("tcp", other) {
			t.Errorf("%s: another server is out of reach too", name)
		}
		forgetTCP()
		forgetUnix()
		if !reaches("tcp", reached[0]) && !reaches("unix", reached[0]) {
			t.Errorf("%s: it is not forgotten", name)
		}
	}
}

// TestWaitingConnectsHoldNoThreads: however many connects of commands wait, the
// server's threads stay few, and nothing stays when the commands have ended.
func TestWaitingConnectsHoldNoThreads(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	count := func() int {
		tasks, err := os.ReadDir("/proc/self/task")
		must(t, err)
		return len(tasks)
	}
	before := count()
	var confiners []*threads.Confiner
	var domains []*threads.Domain
	var commands []*exec.Cmd
	for range 6 {
		p := newPlace(t)
		c := confiner(t, p.policy(), kernel.Missing{})
		cmd := exec.Command(exe)
		cmd.Dir = p.ws
		cmd.Env = append(os.Environ(), probeVar+"=connects")
		d, err := c.Start(starting(cmd))
		must(t, err)
		confiners, domains, commands = append(confiners, c), append(domains, d), append(commands, cmd)
		eventually(t, "the command does not connect", p.isUp)
	}
	waits := func() (n int) {
		for _, c := range confiners {
			n += len(c.Waits)
		}
		return n
	}
	eventually(t, "too few connects wait: nothing is proven", func() bool { return waits() == len(confiners)*broker.WaitingConnects })
	most := 0
	for range 50 {
		most = max(most, count())
		time.Sleep(10 * time.Millisecond)
	}
	if most > before+100 {
		t.Errorf("%d connects wait, and %d threads became %d", waits(), before, most)
	}
	for i, d := range domains {
		must(t, d.Kill())
		_ = wait(commands[i])
		waitDone(t, d)
	}
	eventually(t, "connects wait for commands that have ended", func() bool { return waits() == 0 })
}

// TestHungConnectsHoldNoOtherSession: a command that makes connects of its own
// block the broker holds up its own session only, and until it ends.
func TestHungConnectsHoldNoOtherSession(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	p, other := newPlace(t), newPlace(t)
	c, o := confiner(t, p.policy(), kernel.Missing{}), confiner(t, other.policy(), kernel.Missing{})
	cmd := exec.Command(exe)
	cmd.Dir = p.ws
	cmd.Env = append(os.Environ(), probeVar+"=hang")
	d, err := c.Start(starting(cmd))
	must(t, err)
	stays := func(lock *sync.Mutex) bool {
		for range 20 {
			if lock.TryLock() {
				lock.Unlock()
				return false
			}
			time.Sleep(10 * time.Millisecond)
		}
		return true
	}
	hung := func() bool {
		for i := range c.Sockets {
			if stays(&c.Sockets[i]) {
				return true
			}
		}
		return false
	}
	eventually(t, "no connect hangs: nothing is proven", hung)
	if r := other.do(t, o, []string{probeVar + "=loopback"}, exe); r.err != nil {
		t.Errorf("another session: %v %s", r.err, r.out)
	}
	must(t, d.Kill())
	_ = wait(cmd)
	waitDone(t, d)
	eventually(t, "locks are held for a command that has ended", func() bool { return !hung() })
}
