//go:build amd64 || arm64

package confine

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/namespaces"
	"golang.org/x/sys/unix"
)

// inOldRoot is where a path of the machine was found while the mounts of a session were made,
// when that place had a name that a command could know.
func inOldRoot(path string) string { return "/.old" + path }

// TestGuardMakesNothingOutside: what the guard makes where it is missing it does not make
// where a link leads that a command has left, which reaches the whole machine then.
func TestGuardMakesNothingOutside(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	p := linked(t, `git init -q n; git -C n config core.hooksPath .git/x/made; ln -s `+inOldRoot("$PWD/..")+` n/.git/x`)
	p.inSh(t, p.isolator(t, true), "true")
	if _, err := os.Stat(filepath.Join(p.ws, "../made")); err == nil {
		t.Error("a directory was made outside of the workspace")
	}
	for _, name := range []string{"GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME", "GIT_CONFIG_SYSTEM"} {
		t.Setenv(name, "")
	}
	p = linked(t, `ln -s `+inOldRoot("$PWD/..")+` .config`)
	t.Setenv("HOME", p.ws)
	p.inSh(t, p.isolator(t, true), "true")
	if _, err := os.Stat(filepath.Join(p.ws, "../git")); err == nil {
		t.Error("settings were made outside of the workspace")
	}
}

// TestGuardActsOnWhatItSaw: a command that puts links in the place of repositories while
// another session begins has nothing mounted or made where they lead.
func TestGuardActsOnWhatItSaw(t *testing.T) {
	p := newPlace(t)
	p.mustSh(t, `mkdir ../out; echo secret > ../out/secret; for i in $(seq 60); do mkdir -p g$i/objects g$i/refs; touch g$i/HEAD; ln -s `+inOldRoot("$PWD/../out")+` x$i; done`)
	stop, done := make(chan bool), make(chan bool)
	go func() { // as a command of another session does
		defer close(done)
		repositories, _ := filepath.Glob(filepath.Join(p.ws, "g*"))
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, g := range repositories {
				link := filepath.Join(p.ws, "x"+strings.TrimPrefix(filepath.Base(g), "g"))
				_ = unix.Renameat2(unix.AT_FDCWD, g, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
			}
		}
	}()
	begun := 0
	for try := 0; try < 100 && begun < 20 && !t.Failed(); try++ {
		i, err := namespaces.NewWith(namespaces.Isolation{Policy: p.policy(), Workspace: p.ws, Guard: true}, kernel.Features{Landlock: kernel.LandlockABI()})
		if err == nil {
			begun++
			out, _ := p.inSh(t, i, `for d in g* x*; do test -e $d/secret && echo evil > $d/secret; done; cat g*/secret x*/secret`)
			must(t, i.Close())
			if text, _ := os.ReadFile(filepath.Join(p.ws, "../out/secret")); string(text) != "secret\n" {
				t.Errorf("it was written: %s%s", text, out)
			}
		} // else it was refused
		if made, _ := os.ReadDir(filepath.Join(p.ws, "../out")); len(made) > 1 {
			t.Errorf("made outside: %v", made)
		}
	}
	close(stop)
	<-done
	if begun == 0 {
		t.Fatal("no session has begun: this proves nothing")
	}
}

// TestSettingsThatLeadNowhere: where the user's settings are links to what is missing in the
// workspace, commands could make it; it is made, or the session refused.
func TestSettingsThatLeadNowhere(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	newPlace(t).isolator(t, true)
	for _, name := range []string{"GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME", "GIT_CONFIG_SYSTEM"} {
		t.Setenv(name, "")
	}
	const use = `unset GIT_CONFIG_GLOBAL; HOME=$PWD git status`
	for setup, attack := range map[string]string{
		`ln -s dot/c .gitconfig`:                     `mkdir dot; ` + settingsEvil + ` > dot/c`,
		`mkdir dot; ln -s "$PWD/dot" .config`:        `mkdir dot/git; ` + settingsEvil + ` > dot/git/config`,
		`mkdir dot; ln -s dot .config`:               `mkdir dot/git; ` + settingsEvil + ` > dot/git/config`,
		`mkdir -p dot/git; ln -s "$PWD/dot" .config`: settingsEvil + ` > dot/git/config`,
	} {
		free, p := linked(t, setup), linked(t, setup)
		free.mustSh(t, attack)
		if !free.usedBy(t, use) {
			t.Fatal("without the sandbox nothing ran: this proves nothing")
		}
		t.Setenv("HOME", p.ws)
		i, err := namespaces.NewWith(namespaces.Isolation{Policy: p.policy(), Workspace: p.ws, Guard: true}, kernel.Features{Landlock: kernel.LandlockABI()})
		if err != nil {
			continue
		}
		out, _ := p.inSh(t, i, attack)
		must(t, i.Close())
		if p.usedBy(t, use) {
			t.Errorf("%s: it ran: %s", setup, out)
		}
	}
}
