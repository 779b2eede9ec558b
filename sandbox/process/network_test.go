package process

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/process/internal/environ"
)

func ruled(t *testing.T, list string) Network {
	t.Helper()
	n, err := ParseNetwork(list)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestParseNetwork(t *testing.T) {
	for text, want := range map[string]struct{ open, closed bool }{
		"deny": {false, true}, " allow": {true, false}, "a.example": {false, false}, "10.0.0.0/8:5432,-a.example": {false, false},
	} {
		n := ruled(t, text)
		if n.Open() != want.open || n.Closed() != want.closed || n.String() != strings.TrimSpace(text) {
			t.Errorf("%s: open %v, closed %v, %s", text, n.Open(), n.Closed(), n)
		}
	}
	if _, err := ParseNetwork("a.example,*"); err == nil {
		t.Error("every name is permitted")
	}
}

// TestRulesAreTold: descriptions name rules, but no more than anyone reads.
func TestRulesAreTold(t *testing.T) {
	var many []string
	for i := range 13 {
		many = append(many, fmt.Sprintf("h%d.example", i))
	}
	for list, want := range map[string]string{
		"deny": "There is no network but servers", "allow": "", "a.example,b.example:5432": "only what the user has named (a.example, b.example:5432) and servers",
		"*.a.example,-b.a.example": "what follows a minus they never reach.",
		strings.Join(many, ","):    "h9.example and 3 more) and servers",
	} {
		got := ruled(t, list).Sentence()
		if !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%s: %q", list, got)
		}
	}
}

// TestRuledCommandsAreOnline: with rules tools behave as with a network, but nobody
// is sent to a proxy.
func TestRuledCommandsAreOnline(t *testing.T) {
	cfg := Config{Env: []string{"HOME=/h", "USER=ann", "https_proxy=x", "NO_PROXY=y", "Https_Proxy=z", "npm_config_proxy=x", "NPM_CONFIG_HTTPS_PROXY=x", "npm_config_noproxy=x", "YARN_HTTPS_PROXY=x", "GOPROXY=https://g"}, Network: ruled(t, "a.example")}
	env := strings.Join(environ.ForCommands(cfg.host(), true), " ")
	if rest := strings.ToLower(strings.Replace(env, "GOPROXY=https://g", "", 1)); rest == strings.ToLower(env) || strings.Contains(rest, "proxy") || strings.Contains(env, "PIP_RETRIES=0") {
		t.Error(env)
	}
	for text, want := range map[string]string{
		"registry=https://r/\nproxy=http://p/\nhttps-proxy = http://p/\nnoproxy=x\n": "registry=https://r/\nnoproxy=x\n",
		"[global]\nproxy: http://p\ntimeout = 3\n":                                   "[global]\ntimeout = 3\n",
		"[http]\nproxy = \"http://p\"\n[net]\ngit-fetch-with-cli = true\n":           "[http]\n[net]\ngit-fetch-with-cli = true\n",
		"http.proxy = \"p:1\"\n":                                                     "",
		"[http]\n\tproxy = \"p:1\"\n[user]\n\tname = a":                              "[http]\n[user]\n\tname = a",
	} {
		if got := environ.ProxySetting.ReplaceAllString(text, ""); got != want {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}
