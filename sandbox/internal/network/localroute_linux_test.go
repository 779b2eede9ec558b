package network

import (
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/netlink"
)

// inNamespace runs the calling test again in a network namespace of its own, in which
// it may do everything, and reports whether this is that run.
func inNamespace(t *testing.T) bool {
	t.Helper()
	const mark = "NETWORK_TEST_NAMESPACE"
	if os.Getenv(mark) != "" {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), mark+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	}
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil && len(out) == 0:
		t.Skip("this machine gives no namespaces: ", err)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skip(string(out))
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	}
	return false
}

// loopbackUp gives the namespace its loopback.
func loopbackUp(t *testing.T) {
	t.Helper()
	sock, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(sock)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	ifr.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(sock, unix.SIOCSIFFLAGS, ifr); err != nil {
		t.Skip("loopback stays down: ", err)
	}
}

// addRoute adds a route by loopback.
func addRoute(t *testing.T, prefix string, kind uint8) {
	t.Helper()
	to := netip.MustParsePrefix(prefix)
	route := unix.RtMsg{Dst_len: uint8(to.Bits()), Table: unix.RT_TABLE_LOCAL, Protocol: unix.RTPROT_BOOT, Type: kind, Scope: unix.RT_SCOPE_HOST}
	if kind == unix.RTN_UNICAST {
		route.Table, route.Scope = unix.RT_TABLE_MAIN, unix.RT_SCOPE_LINK
	}
	route.Family = netlink.Family(to.Addr())
	m := netlink.NewMessage(unix.RTM_NEWROUTE, unix.NLM_F_CREATE, route).Attr(unix.RTA_DST, to.Addr().AsSlice())
	m.Attr(unix.RTA_OIF, uint32(1)) // loopback's number is 1 everywhere
	sock, err := netlink.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(int(sock))
	if err := sock.Ask(m); err != nil {
		if to.Addr().Is6() {
			t.Skip("there is no IPv6 here")
		}
		t.Fatalf("no route to %s: %v", prefix, err)
	}
}

// TestLocalRoutesAreTheHostsOwn has addresses led to this machine that are on none of
// its interfaces.
func TestLocalRoutesAreTheHostsOwn(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	loopbackUp(t)
	addRoute(t, "0.0.0.0/1", unix.RTN_UNICAST)
	addRoute(t, "46.0.0.0/24", unix.RTN_LOCAL)
	for _, bindAny := range []string{"0", "1"} {
		if err := os.WriteFile("/proc/sys/net/ipv4/ip_nonlocal_bind", []byte(bindAny), 0); err != nil {
			t.Log(err) // it says 0 in any case
		}
		ownsLocalRoute(t, "46.0.0.7", "47.0.0.1")
	}
	if !ownSource(netip.MustParseAddr("46.0.0.7")) || ownSource(netip.MustParseAddr("47.0.0.1")) || ownSource(netip.MustParseAddr("198.51.100.1")) {
		t.Error("the address that the kernel sends from tells nothing")
	}
	addRoute(t, "2000::/3", unix.RTN_UNICAST)
	addRoute(t, "2606:4700:aa::/64", unix.RTN_LOCAL)
	ownsLocalRoute(t, "2606:4700:aa::5", "2606:4700:bb::5")
}

func ownsLocalRoute(t *testing.T, own, other string) {
	t.Helper()
	hostAddresses.asked = hostAddresses.asked.Add(-ownTime)
	addr := netip.MustParseAddr(own)
	z := &zone{of: map[string][]string{"a.example.": {own}, "b.example.": {other}}}
	g := testGate(t, "*.example,0.0.0.0/0,::/0", z)
	if got := ask(t, g, "a.example.", qtype(addr)); got.code != 0 || len(got.addrs) > 0 {
		t.Errorf("%s is handed out: %+v", own, got)
	}
	wantRefusals(t, g, 0, "a.example (a.example resolves to the host's own address "+own+"; name it in --network to permit it)")
	_ = g.reached.hand(addr, "a.example", grant{ports: defaultPorts}) // as if it were led here later
	if v := g.Admit(netip.AddrPortFrom(addr, 443)); v.Allowed {
		t.Errorf("%+v", v)
	}
	if got := ask(t, g, "b.example.", qtype(addr)); len(got.addrs) != 1 {
		t.Errorf("%s is refused: %q", other, g.Refusals(0))
	}
	if named := testGate(t, "*.example,"+own, z); ask(t, named, "a.example.", qtype(addr)).code != 0 || !named.Admit(netip.AddrPortFrom(addr, 443)).Allowed {
		t.Errorf("%s is refused where a rule names it", own)
	}
}
