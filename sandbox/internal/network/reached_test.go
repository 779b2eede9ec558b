package network

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
)

func address(i int) netip.Addr { return netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)}) }

func TestOnForgetIsToldWhatIsForgotten(t *testing.T) {
	g := testGate(t, "a.example,b.example:22,198.51.0.1:22", &zone{})
	var told []netip.Addr
	reached := map[netip.Addr]bool{}
	g.OnReach(func(r Reach) error {
		reached[r.Prefix.Addr()] = true
		if r.Prefix.Addr() == address(7) {
			return errors.New("no way there")
		}
		return nil
	})
	g.OnForget(func(addr netip.Addr) {
		g.reached.names(addr) // what Reached and Admit ask
		told = append(told, addr)
		delete(reached, addr)
	})
	for i := range addressesKept + 4 {
		if err := g.reached.hand(address(i), "a.example", grant{ports: defaultPorts}); (err != nil) != (i == 7) {
			t.Fatal(i, err)
		}
	}
	if want := []netip.Addr{address(7), address(0), address(2)}; !slices.Equal(told, want) { // a rule names that between
		t.Error(told)
	}
	if len(reached) != addressesKept+1 || len(g.reached.of) != addressesKept || g.Reached(address(2)) || !g.Reached(address(3)) {
		t.Error(len(reached), "addresses have a way,", len(g.reached.of), "are known")
	}
	g.OnReach(func(r Reach) error {
		if r.Prefix.Addr() == address(9) {
			return errors.New("no way for this one")
		}
		return nil
	})
	if g.Reached(address(9)) || reached[address(9)] {
		t.Error("an address that a later mechanism refuses stays with the earlier")
	}
	reached[address(10)] = true
	g.OnReach(func(r Reach) error { return nil })
	if err := g.reached.hand(address(10), "b.example", grant{ports: portSet{some: []uint16{22}}}); err != nil || !reached[address(10)] {
		t.Error("an address that gets another port is forgotten")
	}
}

func TestAnAddressInUseIsNotForgotten(t *testing.T) {
	g := testGate(t, "a.example", &zone{})
	hand := func(from, to int) {
		for i := range to - from {
			if err := g.reached.hand(address(from+i), "a.example", grant{ports: defaultPorts}); err != nil {
				t.Fatal(err)
			}
		}
	}
	hand(0, 1)
	g.enter(address(0))
	hand(1, addressesKept+10)
	if !slices.Equal(g.reached.names(address(0)), []string{"a.example"}) || len(g.reached.of) != addressesKept {
		t.Error("the way of a connection was taken away")
	}
	g.leave(address(0))
	hand(addressesKept+10, 2*addressesKept+20)
	if g.Reached(address(0)) || len(g.reached.held) != 0 {
		t.Error("it stays when the connection has ended")
	}
}

func TestAnAddressWithoutRoomIsRefusedInWords(t *testing.T) {
	z := &zone{of: map[string][]string{"a.example.": {"198.51.100.1", "2606:4700::1"}}}
	g := testGate(t, "a.example", z)
	fails := fmt.Errorf("route: %w", ErrTooMany)
	g.OnReach(func(Reach) error { return fails })
	for _, c := range []struct {
		err   error
		qtype uint16
	}{{fails, 1}, {fails, 28}, {errors.New("the session has no IPv6"), 28}, {errors.New("no\nroute"), 1}} {
		fails = c.err
		if got := ask(t, g, "a.example.", c.qtype); got.code != 0 || got.addrs != nil {
			t.Errorf("%v: %v %v", c.err, got.code, got.addrs)
		}
	}
	wantRefusals(t, g, 0, "a.example (the session knows too many addresses already)",
		`a.example (the session has no way to 198.51.100.1: no\nroute)`)
}

func TestNamesWithPortsOfTheirOwnAreKept(t *testing.T) {
	g := testGate(t, "db.example:5432,odd.example:*,-odd.example:22,ssh.example:22,*.cdn.example", &zone{})
	addr := address(0)
	for _, name := range []string{"db.example", "odd.example", "ssh.example"} {
		g.handOut(name, addr)
	}
	for i := range namesKept * 2 {
		g.handOut(fmt.Sprintf("n%d.cdn.example", i), addr)
	}
	names := g.reached.names(addr)
	if len(names) != namesKept || names[0] != "n63.cdn.example" || !slices.Contains(names, "db.example") || !slices.Contains(names, "odd.example") || !slices.Contains(names, "ssh.example") {
		t.Error(len(names), names)
	}
	for port, want := range map[uint16]string{5432: "db.example", 22: "ssh.example", 443: "n63.cdn.example", 8080: "odd.example"} {
		if v := g.Admit(netip.AddrPortFrom(addr, port)); !v.Allowed || want != "db.example" && v.Host != want {
			t.Errorf("%d: %+v", port, v)
		}
	}
}
