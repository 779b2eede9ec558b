//go:build amd64 || arm64

package gateway

import (
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/netlink"
)

// The two ends of the way out of a session have the same name in their namespaces:
// that of the commands, and the gateway, in which no process lives. Their numbers
// differ, or the kernel takes its time to start them.
const (
	WayName      = "way"
	WayIndex     = 53 // in that of the commands
	gatewayIndex = 54
	loIndex      = 1
)

// Addresses of the ends. They lead nowhere but to each other, and programs that
// choose by their own address take IPv4 first.
var (
	wayHere  = []netip.Addr{netip.MustParseAddr("192.0.0.2"), netip.MustParseAddr("fd70:6261:7365::2")}
	WayThere = []netip.Addr{netip.MustParseAddr("192.0.0.1"), netip.MustParseAddr("fd70:6261:7365::1")}
	Anywhere = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
)

// Tables of routes and the order of what bothFamilies to them, between those for what is
// local and those for all else, which are empty.
const (
	portTables = 1 << 20                // and the number of a port, 0 for every port
	hereTable  = portTables + 1<<16     // of the gateway: all is here
	NameTable  = portTables + 1<<16 + 1 // of the commands: to the gateway
	loTable    = portTables + 1<<16 + 2 // of the commands, bound to loopback: all is here

	orderNames = 100
	orderPort  = 200
	orderAny   = 300
	orderRest  = 400
)

// What the stage passes on, in this order.
const (
	wayCommands = iota // a netlink of the commands' namespace
	wayGateway         // one of the gateway
	wayMint            // listens on loopback in the gateway: see mint
	wayClient          // a socket there that connects with it
	wayNames           // gets questions for names by UDP
	wayFrames          // sees what comes in by the way
	wayAgain           // sends it once more
	Parts
)

// Lacks are parts of the kernel to do without, so that a test can see what happens.
type Lacks struct{ IPv6, Veth bool }

// Make makes the gateway of the namespace that this thread is in, leaves for the
// gateway, and returns the descriptors that it consists of.
func Make(settings int, without Lacks) (made []int, err error) {
	w := wayMaker{settings: settings, without: without}
	steps := []struct {
		what string
		make func() error
	}{
		{"the network of commands", w.enter},
		{"a second network namespace (/proc/sys/user/max_net_namespaces says how many there may be)", func() error { return unix.Unshare(unix.CLONE_NEWNET) }},
		{"the gateway's network", w.enterGateway},
		{"a pair of virtual interfaces: load the kernel's module veth, or use --sandbox landlock, which does without", func() error {
			return w.commands.addLinks(os.Getpid(), w.kind())
		}},
		{"addresses", w.address},
		{"routes by protocol and port, which Linux 4.17 has (--sandbox landlock does without)", w.rules},
		{"the gateway's sockets", w.sockets},
		{"trying the routes", w.try},
	}
	for _, s := range steps {
		if err := s.make(); err != nil {
			return nil, fmt.Errorf("%s: %w", s.what, err)
		}
	}
	return w.made[:], nil
}

// A wayMaker makes a gateway. The thread is in the commands' namespace first.
type wayMaker struct {
	commands, gateway netlinkSocket
	settings          int // /proc/sys/net
	without           Lacks
	families          []int // indexes into wayHere and so on
	Results           [2]int
	made              [Parts]int
}

// kind is that of the interfaces, as the kernel names it.
func (w *wayMaker) kind() string {
	if w.without.Veth {
		return "nothing"
	}
	return "veth"
}

func (w *wayMaker) enter() (err error) {
	w.families = []int{0}
	if sock, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err == nil {
		unix.Close(sock)
		if !w.without.IPv6 {
			w.families = []int{0, 1}
		}
	}
	for i := range w.Results {
		if w.Results[i], err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
	}
	if w.made[wayAgain], err = frames(); err != nil {
		return err
	}
	if w.commands, err = OpenNetlink(); err != nil {
		return err
	}
	w.made[wayCommands] = int(w.commands)
	return w.set()
}

func (w *wayMaker) enterGateway() (err error) {
	if err := RaiseLoopback(); err != nil {
		return err
	}
	if w.gateway, err = OpenNetlink(); err != nil {
		return err
	}
	w.made[wayGateway] = int(w.gateway)
	return w.set()
}

// OpenSettings opens the settings of networks, those of the namespace of whatever
// thread uses them. The kernel permits that only where a whole /proc can be seen that
// is not read only.
func OpenSettings() (int, error) {
	proc, err := unix.Fsopen("proc", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("fsopen: %w", err)
	}
	defer unix.Close(proc)
	if err := unix.FsconfigCreate(proc); err != nil {
		return -1, fmt.Errorf("fsconfig: %w", err)
	}
	root, err := unix.Fsmount(proc, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("fsmount: %w", err)
	}
	defer unix.Close(root)
	return unix.Openat(root, "sys/net", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// set makes the settings that the machine may have for new namespaces those that
// are needed here.
func (w *wayMaker) set() error {
	settings := map[string]string{"ipv4/conf/all/rp_filter": "0", "ipv4/conf/default/rp_filter": "0"}
	if len(w.families) > 1 {
		settings["ipv6/conf/all/disable_ipv6"], settings["ipv6/conf/default/disable_ipv6"] = "0", "0"
	}
	for name, value := range settings {
		if err := w.setting(name, value); err != nil {
			return err
		}
	}
	return nil
}

func (w *wayMaker) setting(name, value string) error {
	file, err := unix.Openat(w.settings, name, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer unix.Close(file)
	if _, err = unix.Write(file, []byte(value)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// address starts the interfaces. Each knows the way to the other, the commands' for
// questions for names only.
func (w *wayMaker) address() error {
	err := cmp.Or(w.commands.raise(WayIndex), w.gateway.raise(gatewayIndex))
	for _, f := range w.families {
		here, there := wayHere[f], WayThere[f]
		err = cmp.Or(err, w.commands.addAddress(WayIndex, here), w.gateway.addAddress(gatewayIndex, there),
			w.gateway.AddRoute(Route{Table: unix.RT_TABLE_MAIN, To: netip.PrefixFrom(here, here.BitLen()), Link: gatewayIndex}),
			w.gateway.AddRoute(Route{Table: hereTable, To: Anywhere[f], Link: loIndex, local: true}),
			w.commands.AddRoute(Route{Table: NameTable, To: Anywhere[f], Via: there, Link: WayIndex}))
	}
	return err
}

// NameServers is what commands read of /etc/resolv.conf: the machine's own, but for
// the servers. One on loopback would be sought in the session.
func NameServers(text string) string {
	var own strings.Builder
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 0 && slices.Contains([]string{"search", "domain", "options", "sortlist"}, f[0]) {
			own.WriteString(strings.TrimRight(line, "\n") + "\n")
		}
	}
	fmt.Fprintf(&own, "nameserver %v\n", WayThere[0])
	return own.String()
}

// rules lead questions for names here. Whatever else comes into the gateway is
// refused, and said to be: that is what the kernel calls forwarding.
func (w *wayMaker) rules() error {
	err := w.setting("ipv4/conf/"+WayName+"/forwarding", "1")
	for _, f := range w.families {
		family := netlink.Family(wayHere[f])
		for _, protocol := range []uint8{unix.IPPROTO_UDP, unix.IPPROTO_TCP} {
			s := RouteRule{Family: family, Order: orderNames, Protocol: protocol, port: kernel.NamePort, Table: NameTable}
			err = cmp.Or(err, w.commands.AddRouteRule(s))
			s.from, s.Table = WayName, hereTable
			err = cmp.Or(err, w.gateway.AddRouteRule(s))
		}
		err = cmp.Or(err, w.gateway.AddRouteRule(RouteRule{Family: family, Order: orderRest, from: WayName}),
			// For a socket bound to loopback: where there is no route, the kernel sends, and
			// nobody answers.
			w.commands.AddRoute(Route{Table: loTable, To: Anywhere[f], Link: loIndex, local: true}),
			w.commands.AddRouteRule(RouteRule{Family: family, Order: orderRest, to: "lo", Table: loTable}))
	}
	return err
}

// sockets makes those of the gateway.
func (w *wayMaker) sockets() (err error) {
	open := func(kind int) (sock int) {
		if err == nil {
			sock, err = w.transparent(kind)
		}
		return sock
	}
	w.made[wayMint], w.made[wayClient], w.made[wayNames] = open(unix.SOCK_STREAM), open(unix.SOCK_STREAM), open(unix.SOCK_DGRAM)
	if err != nil {
		return err
	}
	if w.made[wayFrames], err = frames(); err != nil {
		return err
	}
	if len(w.families) > 1 {
		err = cmp.Or(unix.Bind(w.made[wayMint], &unix.SockaddrInet6{Addr: netip.IPv6Loopback().As16()}),
			unix.SetsockoptInt(w.made[wayNames], unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1),
			unix.Bind(w.made[wayNames], &unix.SockaddrInet6{Port: kernel.NamePort}))
	} else {
		err = cmp.Or(unix.Bind(w.made[wayMint], &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}),
			unix.SetsockoptInt(w.made[wayNames], unix.IPPROTO_IP, unix.IP_PKTINFO, 1),
			unix.Bind(w.made[wayNames], &unix.SockaddrInet4{Port: kernel.NamePort}))
	}
	return cmp.Or(err, unix.Listen(w.made[wayMint], 1))
}

// transparent opens a socket that may answer from addresses which are not this
// machine's, for both families where there are both.
func (w *wayMaker) transparent(kind int) (int, error) {
	family := unix.AF_INET
	if len(w.families) > 1 {
		family = unix.AF_INET6
	}
	sock, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if family == unix.AF_INET6 {
		err = unix.SetsockoptInt(sock, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
	}
	wait := unix.Timeval{Sec: 5}
	return sock, cmp.Or(err, unix.SetsockoptInt(sock, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
		unix.SetsockoptInt(sock, unix.IPPROTO_IP, unix.IP_TRANSPARENT, 1),
		unix.SetsockoptTimeval(sock, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait),
		unix.SetsockoptTimeval(sock, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &wait))
}

// frames opens a socket for what the way carries. It gets nothing before it is bound.
func frames() (int, error) {
	sock, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("a packet socket: %w", err)
	}
	const withOffload = 15 // PACKET_VNET_HDR: with what the interface had left to do, as checksums
	return sock, unix.SetsockoptInt(sock, unix.SOL_PACKET, withOffload, 1)
}

// TryTime is how long the first packet may take.
const TryTime = 15 * time.Second

// try proves that packets are steered as they shall be: a kernel that does not know
// how leads them all the same way. It waits until the first one arrives.
func (w *wayMaker) try() error {
	somewhere := [4]byte{198, 51, 100, 1} // a network for documents
	if err := unix.Connect(w.Results[0], &unix.SockaddrInet4{Addr: somewhere, Port: kernel.NamePort}); err != nil {
		return err
	}
	if err := unix.Connect(w.Results[1], &unix.SockaddrInet4{Addr: somewhere, Port: 9}); err != unix.ENETUNREACH {
		return fmt.Errorf("what is not for names has a way, too (%v): this kernel does not know routes by protocol and port, which Linux 4.17 has; --sandbox landlock does without", err)
	}
	for deadline := time.Now().Add(TryTime); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		_, _ = unix.Write(w.Results[0], []byte{0})
		if n, _, err := unix.Recvfrom(w.made[wayNames], make([]byte, 1), unix.MSG_DONTWAIT); err == nil && n == 1 {
			return w.withoutMulticast()
		}
	}
	return unix.EHOSTUNREACH
}

// withoutMulticast takes the route away that IPv6 has made when the way was ready.
func (w *wayMaker) withoutMulticast() error {
	if len(w.families) == 1 {
		return nil
	}
	return w.commands.withoutMulticast(WayIndex)
}
