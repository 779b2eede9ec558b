package network

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
)

// hostsFile is read by programs without asking anybody.
const hostsFile = "/etc/hosts"

// eachHost calls f for each name in a file like /etc/hosts, lower case and one that a
// host can have.
func eachHost(file io.Reader, f func(name string, addr netip.Addr)) {
	lines := bufio.NewScanner(io.LimitReader(file, 16<<20)) // lists of blocked names are long
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		addr, err := netip.ParseAddr(fields[0])
		if err != nil {
			continue
		}
		for _, name := range fields[1:] {
			if name = canonicalName(name); validName(name) {
				f(name, plain(addr))
			}
		}
	}
}

// readHosts hands out what the host's file says of allowed names, once.
func (g *Gate) readHosts() {
	g.reached.hosts.Do(func() {
		if g.cfg.Rules.Empty() {
			return
		}
		if f, err := os.Open(hostsFile); err == nil {
			defer f.Close()
			g.handHosts(f)
		}
	})
}

func (g *Gate) handHosts(file io.Reader) {
	eachHost(file, func(name string, addr netip.Addr) {
		if !isLocalhost(name) && !g.cfg.Rules.name(name).narrow().empty() {
			g.handOut(name, addr)
		}
	})
}

// hostResolver is the host's own. Without cgo a lookup ends with its context.
type hostResolver struct{ net.Resolver }

// LookupNetIP is that of net.Resolver, which finds names with a last dot in the
// host's file only where they have another dot.
func (r *hostResolver) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if label := strings.TrimSuffix(host, "."); !strings.Contains(label, ".") {
		if addrs, known := fromHosts(network, label); known {
			return addrs, nil
		}
	}
	return r.Resolver.LookupNetIP(ctx, network, host)
}

// fromHosts returns the addresses that the host's file has for a name, and whether it
// has any of either family.
func fromHosts(network, wanted string) (addrs []netip.Addr, known bool) {
	f, err := os.Open(hostsFile)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	eachHost(f, func(name string, addr netip.Addr) {
		known = known || name == wanted
		if name == wanted && addr.Is4() == (network == "ip4") {
			addrs = append(addrs, addr)
		}
	})
	return addrs, known
}

func canonicalName(name string) string { return strings.TrimSuffix(strings.ToLower(name), ".") }
