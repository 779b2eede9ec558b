package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/process/internal/environ"
)

// A program finds its start-up file by the variable, with the copies that are
// possible beside it.
func TestStartup(t *testing.T) {
	commands, err := NewCommands(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer commands.Close()
	d, err := commands.confinement.newSessionDir(true)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Remove()
	host := filepath.Join(t.TempDir(), "rc")
	if err := os.WriteFile(host, []byte("A=host's\nexport API_KEY=sk B=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(large, make([]byte, environ.MaxHostFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	secret := func(name, value string) bool { return environ.Withheld(name, value, nil) }
	for from, want := range map[string]string{host: "A=host's\nexport API_KEY= B=1\n", host + "x": "", d.Path: "", large: "", commands.cfg.Dir: ""} {
		u := &Startup{Var: "V", Name: "start", Text: "ours", Copies: []Copy{{from, "copy"}}}
		dir, err := d.Lay(u.all(commands.confinement.policy(), secret))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(u.value(dir)); string(got) != "ours" || err != nil {
			t.Errorf("%s: %q, %v", from, got, err)
		}
		u.InDir = true
		if u.value(dir) != dir || filepath.Dir(dir) != d.Etc() {
			t.Errorf("%s: %s", from, dir)
		}
		if got, _ := os.ReadFile(filepath.Join(dir, "copy")); string(got) != want {
			t.Errorf("%s: the copy holds %q, want %q", from, got, want)
		}
		d.Unlay(dir)
		if _, err := os.Stat(dir); err == nil {
			t.Error("it is still there")
		}
	}
}

func TestDropEnv(t *testing.T) {
	env := []string{"A=1", "BASH_ENV=x", "B=2", "BASH_ENV=y", "BASH_ENVX=3"}
	if got := strings.Join(environ.Drop(env, []string{"BASH_ENV", "ENV"}), " "); got != "A=1 B=2 BASH_ENVX=3" {
		t.Error(got)
	}
	if env[1] != "BASH_ENV=x" {
		t.Error("the environment of others was changed")
	}
}
