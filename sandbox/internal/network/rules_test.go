package network

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func mustParse(t testing.TB, list string) Rules {
	t.Helper()
	r, err := Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestParseWritesRulesInOneForm(t *testing.T) {
	for list, want := range map[string]string{
		"host.example":            "host.example",
		"HOST.Example.":           "host.example",
		" a.example , b.example ": "a.example b.example",
		"a.example,A.EXAMPLE":     "a.example",
		"*.host.example":          "*.host.example",
		"*.host.example:5432":     "*.host.example:5432",
		"host.example:5432":       "host.example:5432",
		"host.example:*":          "host.example:*",
		"host":                    "host",
		"my_host.example":         "my_host.example",
		"r3---sn-4g5e.example":    "r3---sn-4g5e.example",
		"bücher.example":          "xn--bcher-kva.example",
		"*.BÜCHER.example:8080":   "*.xn--bcher-kva.example:8080",
		"xn--bcher-kva.example":   "xn--bcher-kva.example",
		"10.20.0.0/16:5432":       "10.20.0.0/16:5432",
		"192.0.2.7":               "192.0.2.7",
		"192.0.2.7/32":            "192.0.2.7",
		"192.0.2.7:*":             "192.0.2.7:*",
		"[2001:DB8::1]:22":        "[2001:db8::1]:22",
		"2001:db8::1":             "2001:db8::1",
		"[2001:db8::1]":           "2001:db8::1",
		"2001:db8::/32":           "2001:db8::/32",
		"[2001:db8::/32]:22":      "[2001:db8::/32]:22",
		"[2001:db8::/32]":         "2001:db8::/32",
		"0.0.0.0/0:443":           "0.0.0.0/0:443",
		"a.example,-b.example":    "a.example -b.example",
		"a.example,-b.example:*":  "a.example -b.example",
		"a.example,-*.b.example":  "a.example -*.b.example",
		"a.example:*,-a.example:22,-10.0.0.0/8,-[2001:db8::]:80,-2001:db8::1": "a.example:* -a.example:22 -10.0.0.0/8 -[2001:db8::]:80 -2001:db8::1",
	} {
		r, err := Parse(list)
		if err != nil {
			t.Errorf("%s: %v", list, err)
			continue
		}
		if got := strings.Join(r.List(), " "); got != want {
			t.Errorf("%s: %s, want %s", list, got, want)
		}
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	const port, brackets, loopback = "a port is a number from 1 to 65535", "brackets are for an IPv6 address", "let the server on the host listen on another address"
	for list, want := range map[string]string{
		"":                              "the list of rules is empty",
		" ":                             "the list of rules is empty",
		"a.example,,b.example":          "empty rule",
		"a.example,":                    "empty rule",
		"a.example,-":                   "empty rule",
		"*":                             "give allow alone",
		"a.example,-*":                  "give allow alone",
		"a.example,deny":                "deny and allow stand alone",
		"Allow,a.example":               "deny and allow stand alone",
		"a.example:0":                   port,
		"a.example:65536":               port,
		"a.example:":                    port,
		"a.example:https":               port,
		"a.example:+1":                  port,
		"a.example:080":                 port,
		"a.example:80-90":               port,
		"*:443":                         "*.host.example",
		"a.*.example":                   "*.host.example",
		"a*.example":                    "*.host.example",
		"*.*.example":                   "*.host.example",
		"https://a.example/b":           "leave out https:// and the path",
		"a.example/b":                   "leave out the path",
		"a.example:443/b":               "leave out the path",
		"user@a.example":                "no name of a host",
		"a b.example":                   "no name of a host",
		"a..example":                    "no name of a host",
		".example":                      "no name of a host",
		"*.":                            "no name of a host",
		"--a.example":                   "begins or ends with a -",
		"a-.example":                    "begins or ends with a -",
		"0\x88":                         "no name of a host",
		"\xd30":                         "no name of a host",
		"xn--a.example":                 "no name of a host",
		strings.Repeat("a", 64):         "no name of a host",
		strings.Repeat("a.", 130) + "a": "no name of a host",
		"1.2.3":                         "neither a name nor an address",
		"1.2.3.4.5":                     "neither a name nor an address",
		"256.1.1.1":                     "neither a name nor an address",
		"0x7f.1":                        "neither a name nor an address",
		"a.example.0x7f":                "neither a name nor an address",
		"127.1:80":                      "neither a name nor an address",
		"2001:db8::1:99999":             "in brackets",
		"fe80::1%eth0":                  "in brackets",
		"10.0.0.5/8":                    "written 10.0.0.0/8",
		"10.0.0.0/33":                   "neither a name nor an address",
		"::ffff:10.0.0.1":               "without ::ffff:",
		"[2001:db8::1":                  brackets,
		"[2001:db8::1]22":               brackets,
		"[2001:db8::]/32:22":            brackets,
		"[10.0.0.1]:22":                 brackets,
		"[a.example]:22":                brackets,
		"127.0.0.1:5432":                loopback,
		"127.0.0.0/8":                   loopback,
		"127.9.0.0/16":                  loopback,
		"[::1]:80":                      loopback,
		"::":                            loopback,
		"0.0.0.0":                       loopback,
		"localhost:3000":                loopback,
		"*.localhost":                   loopback,
		"a.example,-127.0.0.1":          loopback,
		"-a.example":                    "only denials",
		"-a.example,-10.0.0.0/8:22":     "only denials",
	} {
		_, err := Parse(list)
		var wrong *RuleError
		if !errors.As(err, &wrong) || !strings.Contains(wrong.Why, want) {
			t.Errorf("%q: %v, want %s", list, err, want)
		} else if !strings.HasSuffix(err.Error(), allowedRules) {
			t.Errorf("%q: %v does not say what is allowed", list, err)
		}
	}
	if _, err := Parse("a.example,1.2.3"); err == nil || !strings.HasPrefix(err.Error(), `rule "1.2.3": `) {
		t.Errorf("%v does not name the rule", err)
	}
}

func TestRulesForNames(t *testing.T) {
	r := mustParse(t, "a.example,*.b.example:8443,x.b.example,any.example:*,-any.example:22,-no.b.example,-*.deep.b.example,half.example,-half.example:80,none.example,-none.example:80,-none.example:443")
	for _, c := range []struct {
		name string
		port uint16
		want bool
		by   string
	}{
		{"a.example", 80, true, ""},
		{"a.example", 443, true, ""},
		{"a.example", 8443, false, ""},
		{"sub.a.example", 443, false, ""},
		{"xa.example", 443, false, ""},
		{"b.example", 8443, false, ""},
		{"y.b.example", 8443, true, ""},
		{"z.y.b.example", 8443, true, ""},
		{"y.b.example", 443, false, ""},
		{"x.b.example", 443, true, ""},
		{"x.b.example", 8443, true, ""},
		{"no.b.example", 8443, false, "-no.b.example"},
		{"deep.b.example", 8443, true, ""},
		{"z.deep.b.example", 8443, false, "-*.deep.b.example"},
		{"any.example", 1, true, ""},
		{"any.example", 22, false, "-any.example:22"},
		{"half.example", 443, true, ""},
		{"half.example", 80, false, "-half.example:80"},
		{"example", 80, false, ""},
	} {
		g := r.name(c.name)
		if g.permits(c.port) != c.want || g.deniedBy(c.port) != c.by {
			t.Errorf("%s:%d: %t, %q", c.name, c.port, g.permits(c.port), g.deniedBy(c.port))
		}
	}
	if left := r.name("half.example").narrow(); !slices.Equal(left.some, []uint16{443}) || !r.name("none.example").narrow().empty() || !r.name("any.example").narrow().all {
		t.Error("a denial left other ports than it should", left)
	}
	if r.name("a.example").permits(22) || len(r.name("any.example").denials) != 1 {
		t.Error("a look at one name changed another")
	}
}

func TestRulesForAddresses(t *testing.T) {
	r := mustParse(t, "10.20.0.0/16:5432,192.0.2.7,[2001:db8::/32]:22,2001:db8::7,64:ff9b::/96,-10.20.9.0/24,-192.0.2.7:80,-198.51.100.1")
	for _, c := range []struct {
		to   string
		want bool
		by   string
	}{
		{"10.20.1.1:5432", true, ""},
		{"10.20.1.1:443", false, ""},
		{"10.21.1.1:5432", false, ""},
		{"10.20.9.1:5432", false, "-10.20.9.0/24"},
		{"192.0.2.7:443", true, ""},
		{"192.0.2.7:80", false, "-192.0.2.7:80"},
		{"192.0.2.8:443", false, ""},
		{"[2001:db8::1]:22", true, ""},
		{"[2001:db8::7]:443", true, ""},
		{"[2001:db8::7]:22", true, ""},
		{"[2001:db9::7]:22", false, ""},
		{"[64:ff9b::198.51.100.2]:443", true, ""},
		{"[64:ff9b::198.51.100.1]:443", false, "-198.51.100.1"},
	} {
		to := netip.MustParseAddrPort(c.to)
		g := r.address(to.Addr(), 0)
		if g.permits(to.Port()) != c.want || g.deniedBy(to.Port()) != c.by {
			t.Errorf("%s: %t, %q", to, g.permits(to.Port()), g.deniedBy(to.Port()))
		}
	}
	want := []Reach{
		{netip.MustParsePrefix("10.20.0.0/16"), []uint16{5432}}, {netip.MustParsePrefix("192.0.2.7/32"), []uint16{80, 443}},
		{netip.MustParsePrefix("64:ff9b::/96"), []uint16{80, 443}}, {netip.MustParsePrefix("2001:db8::/32"), []uint16{22}}, {netip.MustParsePrefix("2001:db8::7/128"), []uint16{80, 443}},
	}
	if got := r.Networks(); !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	if !slices.Equal(r.ports.some, []uint16{22, 80, 443, 5432}) || r.ports.all || r.Empty() {
		t.Error(r.ports, r.Empty())
	}
	if any := mustParse(t, "a.example:*,b.example:81,-c.example:9"); !any.ports.all || !slices.Equal(any.ports.some, []uint16{81}) {
		t.Error(any.ports)
	}
	if none := (Rules{}); !none.Empty() || none.Networks() != nil || none.name("a.example").permits(80) || none.address(netip.MustParseAddr("192.0.2.1"), 0).permits(80) {
		t.Error("the zero value permits something")
	}
}

func TestSpecialAddresses(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1": "loopback", "127.9.9.9": "loopback", "::1": "loopback", "::ffff:127.0.0.1": "loopback",
		"0.0.0.0": "unspecified", "0.1.2.3": "unspecified", "::": "unspecified",
		"10.0.0.1": "private", "172.31.255.255": "private", "192.168.1.1": "private", "fd12::1": "private", "fec0::1": "private", "::ffff:10.0.0.1": "private",
		"169.254.1.1": "link-local", "fe80::1": "link-local", "fe80::1%eth0": "link-local",
		"224.0.0.1": "multicast", "ff02::1": "multicast",
		"100.64.0.1": "carrier-grade NAT", "100.127.255.255": "carrier-grade NAT",
		"169.254.169.254": "metadata", "fd00:ec2::254": "metadata", "100.100.100.200": "metadata", "168.63.129.16": "metadata", "192.0.0.192": "metadata",
		"240.0.0.1": "reserved", "255.255.255.255": "reserved", "198.18.0.1": "reserved", "192.0.0.8": "reserved", "64:ff9b:1::808:808": "reserved", "4000::1": "reserved", "100::1": "reserved",
		"64:ff9b::a00:1": "private", "64:ff9b::7f00:1": "loopback", "64:ff9b::a9fe:a9fe": "metadata", "2002:a00:1::1": "private", "2002:7f00:1::": "loopback",
		"::10.0.0.1": "private", "::8.8.8.8": "reserved", "::ffff:0:10.0.0.1": "private", "2001::1": "reserved",
		"8.8.8.8": "", "::ffff:8.8.8.8": "", "172.32.0.1": "", "100.128.0.1": "", "64:ff9b::808:808": "", "2002:808:808::1": "", "2606:4700::1111": "", "198.51.100.1": "", "168.63.129.17": "",
	} {
		s, ok := specialOf(plain(netip.MustParseAddr(addr)))
		if s.kind != want || ok != (want != "") {
			t.Errorf("%s is %q, want %q", addr, s.kind, want)
		}
	}
}

func TestOnlyItsOwnNetworkNamesASpecialAddress(t *testing.T) {
	for _, c := range []struct {
		rule, addr string
		want       bool
	}{
		{"10.0.0.1:443", "10.0.0.1", true},
		{"10.0.0.0/8", "10.0.0.1", true},
		{"8.0.0.0/5", "10.0.0.1", false},
		{"0.0.0.0/0", "10.0.0.1", false},
		{"0.0.0.0/0", "127.0.0.1", false},
		{"169.254.0.0/16", "169.254.169.254", true},
		{"168.0.0.0/8", "168.63.129.16", false},
		{"168.63.129.16", "168.63.129.16", true},
		{"::/0", "fd12::1", false},
		{"fd00::/8", "fd12::1", true},
		{"64:ff9b::/96", "64:ff9b::a00:1", false},
		{"64:ff9b::a00:0/104", "64:ff9b::a00:1", true},
		{"64:ff9b::7f00:1", "64:ff9b::7f00:1", false},
		{"2002:a00::/24", "2002:a00:1::1", true},
		{"2002::/16", "2002:a00:1::1", false},
	} {
		addr := netip.MustParseAddr(c.addr)
		s, _ := specialOf(addr)
		if got := mustParse(t, c.rule).address(addr, s.bits).permits(443); got != c.want {
			t.Errorf("%s names %s: %t", c.rule, c.addr, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, list := range []string{"a.example,*.b.example:*,-c.example:22", "10.0.0.0/8:5432,[2001:db8::/32]:22,2001:db8::1", "bücher.example", "0x7f.1", "[]", "-[", "*.:*", "::ffff:1.2.3.4"} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		r, err := Parse(list)
		if err != nil {
			var wrong *RuleError
			if !errors.As(err, &wrong) || wrong.Why == "" || !r.Empty() {
				t.Fatalf("%v, with %v", err, r.List())
			}
			return
		}
		again, err := Parse(strings.Join(r.List(), ","))
		if err != nil || !reflect.DeepEqual(r, again) {
			t.Fatalf("%q became %q and then %q: %v", list, r.List(), again.List(), err)
		}
		for _, addr := range []string{"127.0.0.1", "0.0.0.0", "::1", "::"} {
			addr := netip.MustParseAddr(addr)
			if s, ok := specialOf(addr); !ok || !r.address(addr, s.bits).ports.empty() {
				t.Fatalf("%q names %s", list, addr)
			}
		}
	})
}

// manyRules is a list of n names and n addresses.
func manyRules(t testing.TB, n int) Rules {
	var list []string
	for i := range n / 4 {
		list = append(list, fmt.Sprintf("host%d.example", i), fmt.Sprintf("*.zone%d.example:8443", i), fmt.Sprintf("198.51.%d.%d:%d", i/250, i%250, 1000+i), fmt.Sprintf("-bad%d.example", i))
	}
	return mustParse(t, strings.Join(list, ","))
}
