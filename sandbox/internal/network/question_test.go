package network

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// An answered question.
type answered struct {
	code  dnsmessage.RCode
	addrs []string
	dnsmessage.Message
}

func query(t testing.TB, name string, qtype uint16, more ...func(*dnsmessage.Message)) []byte {
	t.Helper()
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: 4711, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: dnsmessage.Type(qtype), Class: dnsmessage.ClassINET}}}
	for _, f := range more {
		f(&m)
	}
	packed, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

func read(t testing.TB, answer []byte) (a answered) {
	t.Helper()
	if err := a.Unpack(answer); err != nil {
		t.Fatalf("%v in %x", err, answer)
	}
	a.code = a.RCode
	for _, r := range a.Answers {
		switch body := r.Body.(type) {
		case *dnsmessage.AResource:
			a.addrs = append(a.addrs, netip.AddrFrom4(body.A).String())
		case *dnsmessage.AAAAResource:
			a.addrs = append(a.addrs, netip.AddrFrom16(body.AAAA).String())
		}
	}
	return a
}

// ask has the gate answer a question.
func ask(t testing.TB, g *Gate, name string, qtype uint16, more ...func(*dnsmessage.Message)) answered {
	t.Helper()
	return read(t, g.Answer(t.Context(), query(t, name, qtype, more...), 0))
}

func TestAnswersForAllowedNames(t *testing.T) {
	z := &zone{of: map[string][]string{"a.example.": {"198.51.100.1", "2606:4700::1", "198.51.100.2"}, "four.example.": {"198.51.100.4"}}}
	g := testGate(t, "a.example:5432,*.sub.example,four.example", z)
	for _, c := range []struct {
		name  string
		qtype uint16
		code  dnsmessage.RCode
		addrs string
	}{
		{"a.example.", 1, 0, "[198.51.100.1 198.51.100.2]"},
		{"A.exAmple.", 1, 0, "[198.51.100.1 198.51.100.2]"},
		{"a.example.", 28, 0, "[2606:4700::1]"},
		{"four.example.", 28, 0, "[]"},         // no address of this family
		{"x.sub.example.", 1, 3, "[]"},         // no address at all
		{"a.example.", 16, 0, "[]"},            // TXT
		{"a.example.", 65, 0, "[]"},            // HTTPS
		{"a.example.", 255, 0, "[]"},           // ANY
		{"sub.example.", 1, 3, "[]"},           //
		{"evil.example.", 1, 3, "[]"},          //
		{"evil.example.", 65, 3, "[]"},         //
		{"a.example.corp.lan.", 1, 3, "[]"},    // a search domain
		{"evil.example.corp.lan.", 1, 3, "[]"}, // a search domain after what was refused
		{"db.corp.lan.", 1, 3, "[]"},
		{"1.100.51.198.in-addr.arpa.", 12, 0, "[]"},
		{"1.0.0.0.ip6.arpa.", 12, 0, "[]"},
		{"home.arpa.", 1, 3, "[]"},
		{"localhost.", 1, 0, "[127.0.0.1]"},
		{"app.localhost.", 28, 0, "[::1]"},
		{"localhost.", 16, 0, "[]"},
		{"a b.sub.example.", 1, 3, "[]"},
		{".", 2, 5, "[]"},
	} {
		got := ask(t, g, c.name, c.qtype)
		if got.code != c.code || fmt.Sprint(got.addrs) != c.addrs {
			t.Errorf("%s %d: %v %v", c.name, c.qtype, got.code, got.addrs)
		}
		if got.ID != 4711 || !got.Response || !got.RecursionDesired || !got.RecursionAvailable || got.Truncated || len(got.Questions) != 1 || got.Questions[0].Name.String() != c.name || got.Questions[0].Type != dnsmessage.Type(c.qtype) {
			t.Errorf("%s: %+v", c.name, got.Header)
		}
		for _, r := range got.Answers {
			if r.Header.TTL == 0 || r.Header.TTL > 60 || r.Header.Name.String() != c.name {
				t.Errorf("%+v", r.Header)
			}
		}
	}
	for _, asked := range z.asked {
		if !slices.Contains([]string{"ip4 a.example.", "ip6 a.example.", "ip4 four.example.", "ip6 four.example.", "ip4 x.sub.example.", "ip6 x.sub.example."}, asked) {
			t.Errorf("the resolver was asked %q", asked)
		}
	}
	wantRefusals(t, g, 0,
		"sub.example (start the server with --network sub.example to permit it)",
		"evil.example (start the server with --network evil.example to permit it)",
		"db.corp.lan (start the server with --network db.corp.lan to permit it)",
		"home.arpa (start the server with --network home.arpa to permit it)",
		"a name that no host can have (no rule of --network permits it)")
}

func TestAnswersKeepOutSpecialAddresses(t *testing.T) {
	z := &zone{of: map[string][]string{
		"mixed.example.": {"10.0.0.1", "198.51.100.1"}, "private.example.": {"10.0.0.1", "192.168.0.1"}, "loop.example.": {"127.0.0.1", "::1"}, "meta.example.": {"169.254.169.254"},
	}}
	g := testGate(t, "*.example", z)
	for name, want := range map[string]string{"mixed.example.": "[198.51.100.1]", "private.example.": "[]", "loop.example.": "[]", "meta.example.": "[]"} {
		if got := ask(t, g, name, 1); fmt.Sprint(got.addrs) != want || got.code != dnsmessage.RCodeSuccess {
			t.Errorf("%s: %v %v", name, got.code, got.addrs)
		}
	}
	got := strings.Join(g.Refusals(0), "\n")
	for _, want := range []string{
		"blocked by the sandbox: network to private.example (private.example resolves to the private address 10.0.0.1; name it in --network to permit it)",
		"blocked by the sandbox: network to meta.example (meta.example resolves to the metadata address 169.254.169.254; name it in --network to permit it)",
		"blocked by the sandbox: network to loop.example (loop.example resolves to the loopback address 127.0.0.1; " + noLoopback + ")",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nlacks %s", got, want)
		}
	}
	named := testGate(t, "*.example,10.0.0.1:5432", z)
	if got := ask(t, named, "private.example.", 1).addrs; fmt.Sprint(got) != "[10.0.0.1]" || !admit(t, named, "10.0.0.1:5432").Allowed || admit(t, named, "10.0.0.1:443").Allowed || admit(t, named, "192.168.0.1:443").Allowed {
		t.Error(got)
	}
}

func TestAnswersOfQueriesThatAreWrong(t *testing.T) {
	g := testGate(t, "a.example", &zone{of: map[string][]string{"a.example.": {"198.51.100.1"}}})
	for what, c := range map[string]struct {
		edit func(*dnsmessage.Message)
		code dnsmessage.RCode
	}{
		"another class": {func(m *dnsmessage.Message) { m.Questions[0].Class = dnsmessage.ClassCHAOS }, dnsmessage.RCodeRefused},
		"no question":   {func(m *dnsmessage.Message) { m.Questions = nil }, dnsmessage.RCodeFormatError},
		"two questions": {func(m *dnsmessage.Message) { m.Questions = append(m.Questions, m.Questions[0]) }, dnsmessage.RCodeFormatError},
		"an update":     {func(m *dnsmessage.Message) { m.OpCode = 5 }, dnsmessage.RCodeNotImplemented},
	} {
		if got := ask(t, g, "a.example.", 1, c.edit); got.code != c.code || got.ID != 4711 || got.addrs != nil {
			t.Errorf("%s: %v", what, got.code)
		}
	}
	whole := query(t, "a.example.", 1)
	for i := range whole {
		if answer := g.Answer(t.Context(), whole[:i], 0); (answer == nil) != (i < 12) || answer != nil && read(t, answer).code != dnsmessage.RCodeFormatError {
			t.Errorf("%d bytes of a query: %x", i, answer)
		}
	}
	if g.Answer(t.Context(), query(t, "a.example.", 1, func(m *dnsmessage.Message) { m.Response = true }), 0) != nil {
		t.Error("an answer was answered")
	}
}

// TestRefusalsTellWhy: who asks with EDNS learns that an answer is not the name's own.
func TestRefusalsTellWhy(t *testing.T) {
	z := &zone{of: map[string][]string{"private.example.": {"10.0.0.1"}, "a.example.": {"198.51.100.1"}}}
	g := testGate(t, "*.example", z)
	for name, want := range map[string]string{"evil.test.": "\x00\x0fblocked by the sandbox", "private.example.": "\x00\x0fblocked by the sandbox", "a.example.": ""} {
		got, said := ask(t, g, name, 1, edns(4096, 0)), ""
		for _, extra := range got.Additionals {
			for _, option := range extra.Body.(*dnsmessage.OPTResource).Options {
				if option.Code == 15 {
					said = string(option.Data)
				}
			}
		}
		if said != want {
			t.Errorf("%s: %q", name, said)
		}
	}
}

func TestAnswerNowDoesNotWait(t *testing.T) {
	z := &zone{of: map[string][]string{"a.example.": {"198.51.100.1"}}, wait: make(chan struct{})}
	g := testGate(t, "*.example,-no.example", z)
	now := func(name string, qtype uint16) (answered, bool) {
		answer, ok := g.AnswerNow(query(t, name, qtype), 0)
		if !ok {
			if answer != nil {
				t.Errorf("%s is not answered with %x", name, answer)
			}
			return answered{}, false
		}
		return read(t, answer), true
	}
	if got, ok := now("evil.test.", 1); !ok || got.code != dnsmessage.RCodeNameError {
		t.Error(got, ok)
	}
	if got, ok := now("no.example.", 1); !ok || got.code != dnsmessage.RCodeNameError {
		t.Error(got, ok)
	}
	if got, ok := now("a.example.", 16); !ok || got.code != 0 {
		t.Error(got, ok)
	}
	if answer, ok := g.AnswerNow([]byte("no question"), 0); answer != nil || !ok {
		t.Error(answer, ok)
	}
	refused := g.Mark()
	for _, name := range []string{"a.example.", "none.example."} {
		if got, ok := now(name, 1); ok {
			t.Error(name, got)
		}
	}
	if z.count() != 0 || g.Mark() != refused {
		t.Error("what is not answered has done something")
	}
	close(z.wait)
	ask(t, g, "a.example.", 1)
	if got, ok := now("a.example.", 1); !ok || !slices.Equal(got.addrs, []string{"198.51.100.1"}) {
		t.Error(got, ok)
	}
	g.find(t.Context(), asked{"ip4", "none.example"})
	if got, ok := now("none.example.", 1); ok {
		t.Error("half of what is needed is an answer:", got)
	}
	ask(t, g, "none.example.", 1)
	if got, ok := now("none.example.", 28); !ok || got.code != dnsmessage.RCodeNameError {
		t.Error(got, ok)
	}
	g.Close()
	if answer, ok := g.AnswerNow(query(t, "evil.test.", 1), 0); answer != nil || !ok {
		t.Error("a closed gate answers")
	}
}

func edns(size uint16, version uint32) func(*dnsmessage.Message) {
	return func(m *dnsmessage.Message) {
		m.Additionals = append(m.Additionals, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName("."), Type: dnsmessage.TypeOPT, Class: dnsmessage.Class(size), TTL: version << 16}, Body: &dnsmessage.OPTResource{}})
	}
}

func TestAnswersFit(t *testing.T) {
	z := &zone{of: map[string][]string{}}
	long := strings.Repeat("long.", 40) + "example."
	for i := range 40 {
		z.of[long] = append(z.of[long], fmt.Sprint("198.51.100.", i))
	}
	g := testGate(t, "*.example", z)
	for _, c := range []struct {
		size int
		edns uint16
		most int
		all  bool
	}{{0, 0, 1 << 16, true}, {65535, 0, 512, false}, {65535, 4096, 1232, true}, {600, 4096, 600, false}, {65535, 100, 512, false}, {10, 0, 512, false}} {
		var more []func(*dnsmessage.Message)
		if c.edns != 0 {
			more = append(more, edns(c.edns, 0))
		}
		answer := g.Answer(t.Context(), query(t, long, 1, more...), c.size)
		got := read(t, answer)
		if len(answer) > c.most || got.Truncated == c.all || (len(got.addrs) == addressesMost) != c.all || (len(got.Additionals) == 1) != (c.edns != 0) {
			t.Errorf("%+v: %d bytes, %d addresses, truncated %t", c, len(answer), len(got.addrs), got.Truncated)
		}
	}
	got := ask(t, g, long, 1, edns(4096, 1))
	if got.code != 0 || len(got.Additionals) != 1 || got.Additionals[0].Header.TTL>>24 != 1 || got.addrs != nil {
		t.Errorf("a newer EDNS: %+v", got)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(query(f, "a.example.", 1))
	f.Add(query(f, "a.example.", 28, edns(4096, 0)))
	f.Add(query(f, "x.b.example.", 65))
	f.Add([]byte("\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01"))
	z := &zone{of: map[string][]string{"a.example.": {"198.51.100.1", "2606:4700::1", "10.0.0.1"}}}
	g := testGate(f, "a.example,*.b.example,-c.b.example", z)
	f.Fuzz(func(t *testing.T, query []byte) {
		answer := g.Answer(t.Context(), query, 512)
		if answer == nil {
			return
		}
		if got := read(t, answer); len(answer) > 512 || !got.Response || answer[0] != query[0] || answer[1] != query[1] || slices.Contains(got.addrs, "10.0.0.1") {
			t.Fatalf("%x is answered %x", query, answer)
		}
		for _, asked := range z.asked {
			_, name, _ := strings.Cut(asked, " ")
			if name = strings.TrimSuffix(name, "."); !validName(name) || name != "a.example" && !strings.HasSuffix(name, ".b.example") || name == "c.b.example" {
				t.Fatalf("the resolver was asked %q", asked)
			}
		}
		z.asked = nil
		if all := strings.Join(g.Refusals(0), ""); strings.ContainsFunc(all, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Fatalf("%q", all)
		}
	})
}
