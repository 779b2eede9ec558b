package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A program finds its start-up file by the variable, with the copy beside it only
// where that is wanted and possible.
func TestStartupWrite(t *testing.T) {
	tmp := t.TempDir()
	host := filepath.Join(t.TempDir(), "rc")
	if err := os.WriteFile(host, []byte("host's"), 0o600); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(large, make([]byte, maxCopy+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		copy    string
		copying bool
		want    string
	}{{host, true, "host's"}, {host, false, ""}, {host + "x", true, ""}, {tmp, true, ""}, {large, true, ""}, {"", true, ""}} {
		u := &Startup{Var: "V", Name: "start", Text: "ours", Copy: c.copy, CopyName: "copy"}
		dir, err := u.write(tmp, c.copying)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(u.value(dir)); string(got) != "ours" || err != nil {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
		u.InDir = true
		if u.value(dir) != dir || !strings.HasPrefix(dir, tmp) {
			t.Errorf("%+v: %s", c, dir)
		}
		if got, _ := os.ReadFile(filepath.Join(dir, "copy")); string(got) != c.want {
			t.Errorf("%+v: the copy holds %q", c, got)
		}
	}
}

func TestDropEnv(t *testing.T) {
	env := []string{"A=1", "BASH_ENV=x", "B=2", "BASH_ENV=y", "BASH_ENVX=3"}
	if got := strings.Join(dropEnv(env, []string{"BASH_ENV", "ENV"}), " "); got != "A=1 B=2 BASH_ENVX=3" {
		t.Error(got)
	}
	if env[1] != "BASH_ENV=x" {
		t.Error("the environment of others was changed")
	}
}
