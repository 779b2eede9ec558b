//go:build linux

package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/internal/filetest"
)

// TestCacheLivesOn: what a command leaves in the cache is there for the next server
// of the workspace, and for nobody else's commands.
func TestCacheLivesOn(t *testing.T) {
	inEachTier(t, func(t *testing.T, shell func(*testing.T, Config) *Shell) {
		filetest.OwnCaches(t)
		dir := t.TempDir()
		first := shell(t, Config{Dir: dir})
		res := run(t, first, sh(`mkdir -p "$GOCACHE" && echo kept > "$GOCACHE/it" && echo "$GOCACHE"`))
		at := strings.TrimSpace(string(res.Stdout.Head))
		if err := first.c.Close(); err != nil {
			t.Fatal(err)
		}
		if res := run(t, shell(t, Config{Dir: dir}), sh(`cat "$GOCACHE/it"`)); string(res.Stdout.Head) != "kept\n" {
			t.Errorf("the next server finds %q %s", res.Stdout.Head, res.Stderr.Head)
		}
		if res := run(t, shell(t, Config{Dir: t.TempDir()}), sh("cat "+at+"/it")); res.ExitCode == 0 {
			t.Error("commands of another workspace can read it")
		}
		if res := run(t, shell(t, Config{Dir: dir, NoCache: true}), sh(`echo "$GOCACHE"; cat `+at+"/it")); res.ExitCode == 0 || string(res.Stdout.Head) != "\n" {
			t.Errorf("without a cache: GOCACHE is %q, exit code %d", res.Stdout.Head, res.ExitCode)
		}
	})
}

// TestNoCacheWhereCommandsWrite: a cache whose place commands can move is none.
func TestNoCacheWhereCommandsWrite(t *testing.T) {
	filetest.OwnCaches(t)
	base := os.Getenv("XDG_CACHE_HOME")
	s := confinedShell(t, Config{AllowWrite: []string{filepath.Dir(base)}})
	if res := run(t, s, sh(`echo "$GOCACHE"`)); string(res.Stdout.Head) != "\n" {
		t.Errorf("the cache is %s", res.Stdout.Head)
	}
	if entries, err := os.ReadDir(base); err != nil || len(entries) > 0 {
		t.Errorf("something was made in a place that commands can write: %v %v", entries, err)
	}
}

// TestSettingsOfCommands: tools find the user's settings in the private HOME, but
// for the secrets; they can change them there, and the user's stay as they are.
func TestSettingsOfCommands(t *testing.T) {
	inEachTier(t, func(t *testing.T, shell func(*testing.T, Config) *Shell) {
		filetest.OwnCaches(t)
		home := t.TempDir()
		filetest.Put(t, filepath.Join(home, ".gitconfig"), "[user]\n\tname = Ann\n[credential]\n\thelper = s3cret\n[include]\n\tpath = more\n")
		filetest.Put(t, filepath.Join(home, "more"), "[core]\n\texcludesFile = ~/.ignored\n")
		filetest.Put(t, filepath.Join(home, ".ignored"), "*.swp\n")
		filetest.Put(t, filepath.Join(home, ".npmrc"), "registry=https://npm.corp/\n//npm.corp/:_authToken=s3cret\n")
		filetest.Put(t, filepath.Join(home, ".config/go/env"), "GOPRIVATE=corp.example\n")
		s := shell(t, Config{Env: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}})
		res := run(t, s, sh(`cd "$(mktemp -d)" && git init -q . && touch a.swp && git status --short && git config user.name && git config credential.helper
			git config --global user.name Bob && git config user.name && cat ~/.npmrc ~/.config/go/env; cat `+home+`/.npmrc`))
		out := string(res.Stdout.Head)
		if want := "Ann\nBob\nregistry=https://npm.corp/\nGOPRIVATE=corp.example\n"; out != want {
			t.Errorf("commands find\n%s\nnot\n%s\n%s", out, want, res.Stderr.Head)
		}
		if text, err := os.ReadFile(filepath.Join(home, ".gitconfig")); err != nil || !strings.Contains(string(text), "Ann") {
			t.Errorf("the user's own: %s %v", text, err)
		}
		if left := strings.Join(s.c.LeftOut(), " "); left != "~/.npmrc: //npm.corp/:_authToken ~/.gitconfig: credential.helper" {
			t.Errorf("left out: %q", left)
		}
	})
}
