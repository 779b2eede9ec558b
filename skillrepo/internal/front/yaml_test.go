package front

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseMapping(t *testing.T) {
	laughs := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'h'; c++ {
		laughs += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 10), ","))
	}
	tests := []struct{ name, in, want, diag, fail string }{
		{"quote-retry", "description: Use when: asked", `{"description":"Use when: asked"}`, "only with some values quoted", ""},
		{"retry escapes", `description: a: "b" \c`, `{"description":"a: \"b\" \\c"}`, "only with some values quoted", ""},
		{"retry leaves good lines", "a: [1]\nb: x: y", `{"a":[1],"b":"x: y"}`, "only with some values quoted", ""},
		{"retry quotes what is no YAML alone", "a: [b\nc: d", `{"a":"[b","c":"d"}`, "only with some values quoted", ""},
		{"quoted values are not touched", "a: \"x\" y: z", "", "", "not valid YAML"},
		{"still broken", "a: b\n\tc: d", "", "", "not valid YAML"},
		{"duplicate keys", "a: 1\nb: 2\na: 3", `{"a":3,"b":2}`, `the key "a" more than once`, ""},
		{"duplicates within", "m: {k: 1, k: 2}", `{"m":{"k":2}}`, `the key "k" more than once`, ""},
		{"aliases", "a: &x [1]\nb: *x", `{"a":[1],"b":[1]}`, "", ""},
		{"merge keys are keys", "a: &x {k: 1}\nb: {<<: *x}", `{"a":{"k":1},"b":{"<<":{"k":1}}}`, "", ""},
		{"many laughs", laughs, "", "", "stand for more than 10000 nodes"},
		{"long laughs", "a: &x " + strings.Repeat("y", 30000) + "\nb: [" + strings.Repeat("*x,", 9000) + "*x]", "", "", "or 1048576 bytes"},
		{"an alias of its own", "a: &x [*x]", "", "", "levels deep"},
		{"a wide alias of its own", "a: &x [*x, *x]", "", "", "levels deep"},
		{"unknown alias", "a: *x", `{"a":"*x"}`, "only with some values quoted", ""},
		{"deep", "a: " + strings.Repeat("[", 300) + strings.Repeat("]", 300), "", "", "levels deep"},
		{"deeper than the parser goes", "a:\n " + strings.Repeat("[", 30000), "", "", "not valid YAML"},
		{"a list", "- a", "", "", "not a YAML mapping"},
		{"a scalar", "just text", "", "", "not a YAML mapping"},
		{"nothing", "", "", "", "not a YAML mapping"},
		{"only a comment", "# hi", "", "", "not a YAML mapping"},
		{"two documents", "a: 1\n...\n--- {b: 2}", `{"a":1}`, "more than one YAML document", ""},
		{"control characters", "a: \x01", "", "", "not valid YAML"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var warnings []string
			warn := func(format string, args ...any) { warnings = append(warnings, fmt.Sprintf(format, args...)) }
			m, err := ParseMapping(tt.in, warn)
			if tt.want == "" {
				if err == nil || !strings.Contains(err.Error(), tt.fail) {
					t.Fatalf("error %v; want %q", err, tt.fail)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := string(AppendJSON(nil, m.Node)); got != tt.want {
				t.Errorf("got %s; want %s", got, tt.want)
			}
			if got := strings.Join(warnings, "\n"); !strings.Contains(got, tt.diag) || (tt.diag == "") != (got == "") {
				t.Errorf("diagnostics %q; want %q", got, tt.diag)
			}
			if m.Mended != (tt.diag != "") {
				t.Errorf("mended is %v", m.Mended)
			}
		})
	}
}
