package process

import (
	"os/exec"
	"strings"
	"testing"
)

// TestUnsetTokens: what a shell's startup file sets passes the same filter.
func TestUnsetTokens(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip(err)
	}
	s, _ := newShell(t, Config{Sandbox: Off})
	for value, kept := range map[string]bool{
		"ghp_SECRETSECRETSECRET12": false, "glpat-SECRETSECRETSECRET": false, "Authorization: basic x": false, "-----BEGIN RSA PRIVATE KEY-----": false,
		"https://hooks.slack.com/services/T0/B0/x": false, "eyJhbGciOiJI.eyJzdWIiOiIx.sig": false, "Server=x;Password=SECRET": false,
		"/gnu/store/x-glibc-utf8-locales-2.35": true, "plain": true,
	} {
		script := "CONN=$1\n" + s.Unset("CONN", "${!perstack_n}") + "echo ${CONN+kept}"
		out, err := exec.Command("bash", "-c", script, "bash", value).CombinedOutput()
		if err != nil || (strings.TrimSpace(string(out)) == "kept") != kept {
			t.Errorf("%q: %q %v", value, out, err)
		}
	}
}
