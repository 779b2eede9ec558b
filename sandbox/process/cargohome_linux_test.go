package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCargoSettings: cargo works for who has settings, and the tokens in them
// stay out of reach.
func TestCargoSettings(t *testing.T) {
	t.Parallel()
	inEachTier(t, func(t *testing.T, shell func(*testing.T, Config) *Shell) {
		v := newVictim(t)
		config := filepath.Join(v.home, ".cargo", "config.toml")
		if err := os.MkdirAll(filepath.Dir(config), 0o755); err != nil {
			t.Fatal(err)
		}
		const token = "sk-sesame"
		text := "[net]\nretry = 1\n[registries.x]\nindex = \"https://u:" + token + "@h/\"\ntoken = \"" + token + "\"\n[registries]\ny = { index = \"https://y/\", token = \"" + token + "\" }\n[build]\njobs = 1\n"
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg := Config{Dir: v.ws, Env: v.env("/bin")}
		for _, entry := range os.Environ() { // where this machine's cargo finds its toolchain
			if home, ok := strings.CutPrefix(entry, "HOME="); ok {
				cfg.Env = append(cfg.Env, "RUSTUP_HOME="+filepath.Join(home, ".rustup"))
				cfg.AllowRead = []string{filepath.Join(home, ".rustup")}
			}
		}
		s := shell(t, cfg)
		res := run(t, s, sh("cat ~/.cargo/config.toml; cat "+config+" $HOME/.cargo/* ${CARGO_HOME:-/none}/*"))
		if out := string(res.Stdout.Head); strings.Contains(out, token) || !strings.Contains(out, "[net]\nretry = 1\n[registries.x]\n[registries]\n[build]\njobs = 1\n") {
			t.Errorf("commands see %s", out)
		}
		if _, err := exec.LookPath("cargo"); err != nil {
			t.Skip(err)
		}
		if err := os.WriteFile(config, []byte("[net]\nretry = 1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if res := run(t, shell(t, cfg), sh("cargo init -q --name x --vcs none . && cargo check -q --offline")); res.ExitCode != 0 {
			t.Errorf("%s %v", res.Stderr.Head, res.Refused)
		}
	})
}
