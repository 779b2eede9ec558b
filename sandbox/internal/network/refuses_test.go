package network

import "testing"

func TestRefuses(t *testing.T) {
	rules, err := Parse("a.example,*.b.example:8443,-no.b.example,10.1.0.0/16:5432,93.184.216.34")
	if err != nil {
		t.Fatal(err)
	}
	g := NewGate(Config{Rules: rules})
	defer g.Close()
	for _, c := range []struct {
		host string
		port uint16
		want bool
	}{
		{"a.example", 443, false}, {"A.example.", 80, false}, {"a.example", 22, true}, {"x.b.example", 8443, false}, {"b.example", 8443, true},
		{"no.b.example", 8443, true}, {"10.1.2.3", 5432, false}, {"10.1.2.3", 80, true}, {"10.2.0.1", 5432, true}, {"93.184.216.34", 80, false},
		{"::ffff:93.184.216.34", 80, false}, {"93.184.216.35", 80, true}, {"localhost", 80, false}, {"no name", 80, false},
	} {
		if said := g.Refuses(c.host, c.port); (said != "") != c.want {
			t.Errorf("%s:%d: %q", c.host, c.port, said)
		}
	}
	if said := g.Refusals(0); len(said) > 0 {
		t.Errorf("remembered: %q", said)
	}
}
