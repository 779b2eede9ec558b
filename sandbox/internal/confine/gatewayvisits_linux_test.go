//go:build amd64 || arm64

package confine

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/gateway"
	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
)

// visitsVar makes the test binary be a command that goes where it is told: a line each.
const visitsVar = "CONFINE_TEST_VISITS"

func init() {
	if list := os.Getenv(visitsVar); list != "" {
		for line := range strings.Lines(list) {
			how, where, _ := strings.Cut(strings.TrimSpace(line), " ")
			fmt.Printf("%s %s: %s\n", how, where, visit(how, where))
		}
		os.Exit(0)
	}
}

// visit goes to a place and tells how that went.
func visit(how, where string) string {
	said, err := visits[how](where)
	if err == nil {
		return said
	}
	var e unix.Errno
	if errors.As(err, &e) {
		return unix.ErrnoName(e)
	}
	return err.Error()
}

var visits = map[string]func(where string) (string, error){
	"tcp":     func(where string) (string, error) { return greet(net.Dialer{}, "tcp", where) },
	"patient": func(where string) (string, error) { return greet(net.Dialer{}, "tcp", where) },
	"mapped":  visitMapped,
	"loopback": func(where string) (string, error) {
		return greet(boundTo("lo"), "tcp", where)
	},
	"device": func(where string) (string, error) { return greet(boundTo(gateway.WayName), "tcp", where) },
	"mark": func(where string) (string, error) {
		return greet(option(unix.SOL_SOCKET, unix.SO_MARK, 1), "tcp", where)
	},
	"transparent": func(where string) (string, error) {
		return greet(option(unix.IPPROTO_IP, unix.IP_TRANSPARENT, 1), "tcp", where)
	},
	"unroute": func(where string) (string, error) {
		return greet(option(unix.SOL_SOCKET, unix.SO_DONTROUTE, 1), "tcp", where)
	},
	"unicast-if": func(where string) (string, error) {
		return greet(option(unix.IPPROTO_IP, unix.IP_UNICAST_IF, int(1<<24*gateway.WayIndex)), "tcp", where)
	},
	"udp": func(where string) (string, error) { return greet(net.Dialer{}, "udp", where) },
	"raw": func(where string) (string, error) {
		_, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)
		return "a socket", err
	},
	"packet": func(where string) (string, error) {
		_, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
		return "a socket", err
	},
	"route": func(where string) (string, error) {
		n, err := gateway.OpenNetlink()
		if err != nil {
			return "", err
		}
		return "added", n.AddRoute(gateway.Route{Table: unix.RT_TABLE_MAIN, To: gateway.Anywhere[0], Via: gateway.WayThere[0], Link: gateway.WayIndex})
	},
	"rule": func(where string) (string, error) {
		n, err := gateway.OpenNetlink()
		if err != nil {
			return "", err
		}
		return "added", n.AddRouteRule(gateway.RouteRule{Family: unix.AF_INET, Order: 1, Protocol: unix.IPPROTO_TCP, Table: gateway.NameTable})
	},
	"names":    func(where string) (string, error) { return lookUp("udp", where) },
	"names-by": func(where string) (string, error) { return lookUp("tcp", where) },
	"many":     visitMany,
	"connects": visitOften,
	"download": visitLong,
	"served":   visitServed,
	"crowd":    visitCrowd,
	"full":     visitFull,
	"packets":  visitPackets,
	"flooded":  askFlooded,
	"held":     askHeld,
	"fds":      func(string) (string, error) { return openFiles() },
}

func boundTo(device string) net.Dialer {
	return net.Dialer{Control: func(_, _ string, c syscall.RawConn) (err error) {
		_ = c.Control(func(fd uintptr) { err = unix.SetsockoptString(int(fd), unix.SOL_SOCKET, unix.SO_BINDTODEVICE, device) })
		return err
	}}
}

func option(level, opt, value int) net.Dialer {
	return net.Dialer{Control: func(_, _ string, c syscall.RawConn) (err error) {
		_ = c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), level, opt, value) })
		return err
	}}
}

// greet connects and returns who is there, in the words of the peer.
func greet(d net.Dialer, by, where string) (string, error) {
	d.Timeout = 20 * time.Second // what is refused is so at once
	conn, err := d.Dial(by, where)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := conn.Write([]byte("hello\n")); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return "", err
	}
	if peer := conn.RemoteAddr().String(); peer != where {
		return "", fmt.Errorf("the peer is %s", peer)
	}
	return strings.TrimSpace(line), nil
}

// visitMapped connects a socket of IPv6 with an address of IPv4.
func visitMapped(where string) (string, error) {
	at := netip.MustParseAddrPort(where)
	sock, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(sock)
	if err := unix.Connect(sock, &unix.SockaddrInet6{Addr: at.Addr().As16(), Port: int(at.Port())}); err != nil {
		return "", err
	}
	b := make([]byte, 100)
	if _, err := unix.Write(sock, []byte("hello\n")); err != nil {
		return "", err
	}
	n, err := unix.Read(sock, b)
	return strings.TrimSpace(string(b[:max(n, 0)])), err
}

func visitMany(where string) (string, error) {
	var all sync.WaitGroup
	wrong := make(chan error, 200)
	for range cap(wrong) {
		all.Go(func() {
			_, err := greet(net.Dialer{}, "tcp", where)
			wrong <- err
		})
	}
	all.Wait()
	close(wrong)
	for err := range wrong {
		if err != nil {
			return "", err
		}
	}
	return "all", nil
}

// visitServed connects with a server of its own.
func visitServed(where string) (string, error) {
	l, err := net.Listen("tcp", where)
	if err != nil {
		return "", err
	}
	defer l.Close()
	go func() {
		if conn, err := l.Accept(); err == nil {
			_, _ = io.WriteString(conn, "mine\n")
			conn.Close()
		}
	}()
	return greet(net.Dialer{}, "tcp", where)
}

func openFiles() (string, error) {
	entries, err := os.ReadDir("/proc/self/fd")
	var open []string
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			open = append(open, to)
		}
	}
	return fmt.Sprint(open), err
}

// lookUp asks a server for the address of a name: "server:port name".
func lookUp(by, where string) (string, error) {
	server, name, _ := strings.Cut(where, " ")
	conn, err := net.DialTimeout(by, server, 20*time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	query := dnsmessage.Message{Header: dnsmessage.Header{ID: 77, RecursionDesired: true}, Questions: []dnsmessage.Question{
		{Name: dnsmessage.MustNewName(name + "."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}}
	b, err := query.Pack()
	if err != nil {
		return "", err
	}
	if by == "tcp" {
		b = append([]byte{0, byte(len(b))}, b...)
	}
	if _, err := conn.Write(b); err != nil {
		return "", err
	}
	b = make([]byte, 512)
	n, err := conn.Read(b)
	if err != nil {
		return "", err
	}
	b = b[:n]
	if by == "tcp" {
		b = b[min(2, n):]
	}
	var answer dnsmessage.Message
	if err := answer.Unpack(b); err != nil {
		return "", err
	}
	for _, r := range answer.Answers {
		if a, ok := r.Body.(*dnsmessage.AResource); ok {
			return netip.AddrFrom4(a.A).String(), nil
		}
	}
	return answer.RCode.String(), nil
}
