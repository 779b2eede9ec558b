//go:build amd64 || arm64

package listeners

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/filetest"
	"golang.org/x/sys/unix"
)

// TestNamesAreForgotten: names of abstract sockets that were closed take no memory.
func TestNamesAreForgotten(t *testing.T) {
	var names Names
	for i := range 10 * fewNames {
		s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		filetest.Must(t, err)
		filetest.Must(t, unix.Bind(s, &unix.SockaddrUnix{Name: fmt.Sprintf("@confine-%d-%d", os.Getpid(), i)}))
		filetest.Must(t, unix.Listen(s, 1))
		names.Add(s)
		unix.Close(s)
	}
	if n := len(names.inode); n > 2*fewNames {
		t.Errorf("%d names are kept", n)
	}
}

// TestNetworksThatAreOurOwn: routes can make a network the machine's own, of which no
// interface has an address; and a machine may bind to addresses that are not its own.
func TestNetworksThatAreOurOwn(t *testing.T) {
	runtime.LockOSThread() // and end with the thread, which has a network of its own
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skip(err)
	}
	for _, line := range []string{"ip link set lo up", "ip addr add 192.0.2.1/24 dev lo", "ip -6 addr add 2001:db8:1::1/64 dev lo",
		"ip route add local 203.0.113.0/24 dev lo", "ip -6 route add local 2001:db8:77::/64 dev lo"} {
		if out, err := exec.Command("sh", "-c", line).CombinedOutput(); err != nil {
			t.Skipf("%s: %s", line, out)
		}
	}
	isOwn := func(ip string) bool {
		domain := unix.AF_INET6
		if netip.MustParseAddr(ip).Is4() {
			domain = unix.AF_INET
		}
		return isLocal(kernel.InetAddress(domain, netip.AddrPortFrom(netip.MustParseAddr(ip), 80)))
	}
	for until := time.Now().Add(30 * time.Second); !isOwn("2001:db8:1::1") && time.Now().Before(until); { // the kernel adds its route later
		time.Sleep(time.Millisecond)
	}
	for _, nonlocal := range []string{"0", "1"} {
		for _, version := range []string{"ipv4", "ipv6"} {
			filetest.Must(t, os.WriteFile("/proc/sys/net/"+version+"/ip_nonlocal_bind", []byte(nonlocal), 0))
		}
		for ip, want := range map[string]bool{"127.0.0.1": true, "127.9.9.9": true, "::1": true, "192.0.2.1": true, "2001:db8:1::1": true, "203.0.113.7": true,
			"2001:db8:77::5": true, "::ffff:203.0.113.7": true, "198.51.100.1": false, "2001:db8:2::1": false, "::ffff:198.51.100.1": false} {
			if got := isOwn(ip); got != want {
				t.Errorf("with ip_nonlocal_bind=%s, %s: %t", nonlocal, ip, got)
			}
		}
	}
}
