package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/perstack-ai/perstack-base/sandbox/process"
)

// TestNetworkFlag: modes, and rules that add up; what is wrong is named.
func TestNetworkFlag(t *testing.T) {
	for _, c := range []struct {
		given string // values, separated by blanks
		want  string
		err   string // parts of it, separated by |
	}{
		{"deny", "deny", ""},
		{"allow", "allow", ""},
		{"a.example", "a.example", ""},
		{"a.example,10.0.0.0/8:5432", "a.example,10.0.0.0/8:5432", ""},
		{"a.example b.example", "a.example,b.example", ""},
		{"a.example deny", "deny", ""},
		{"allow a.example", "a.example", ""},
		{"a.example deny b.example", "b.example", ""},
		{"db", "db", ""},
		{"alow", "", "must be deny, allow or rules|did you mean allow?|alow:80,alow:443"},
		{"on", "", "must be deny, allow or rules|on:80"},
		{"none", "", "must be deny, allow or rules"},
		{"on:80,on:443", "on:80,on:443", ""},
		{"*", "", `must be deny, allow or rules|"*"`},
		{"a.example,ev!l", "", `"ev!l"`},
		{"https://a.example/", "", "https://a.example/|URL"},
		{"-a.example", "", "-a.example"},
		{",", "", "must be deny, allow or rules"},
	} {
		var got process.Network
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		networkFlag(flags, &got, "network", "")
		var err error
		for _, value := range strings.Fields(c.given) {
			if err = flags.Set("network", value); err != nil {
				break
			}
		}
		switch {
		case c.err == "" && (err != nil || got.String() != c.want):
			t.Errorf("%s: %q, %v", c.given, got.String(), err)
		case c.err != "":
			for part := range strings.SplitSeq(c.err, "|") {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("%s: %v does not say %s", c.given, err, part)
				}
			}
		}
	}
}
