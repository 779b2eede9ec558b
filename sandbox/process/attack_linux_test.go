package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/files"
)

// The attacks of a command that replaces names which the server, or the policy,
// goes by. Each is carried out by the commands of a session, in both tiers.

// A victim is a HOME with what is kept secret in it.
type victim struct{ dir, home, ws, secret string }

const sesame = "open sesame"

func newVictim(t *testing.T) victim {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	v := victim{dir: dir, home: filepath.Join(dir, "home"), ws: filepath.Join(dir, "home", "ws")}
	v.secret = filepath.Join(v.home, ".ssh", "id_rsa")
	for _, d := range []string{v.ws, filepath.Dir(v.secret)} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(v.secret, []byte(sesame), 0o600); err != nil {
		t.Fatal(err)
	}
	return v
}

// env is that of the server: this process's, with the victim's HOME and PATH.
func (v victim) env(path string) []string {
	return []string{"HOME=" + v.home, "PATH=" + path + ":" + os.Getenv("PATH")}
}

// leaks runs scripts one after the other, each in a session of its own as well,
// and reports whether one printed the secret.
func leaks(t *testing.T, s *Shell, scripts ...string) bool {
	t.Helper()
	for _, script := range scripts {
		for _, shell := range []*Shell{s, s.c.NewShell()} {
			res, err := shell.Run(t.Context(), sh(script))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(res.Stdout.Head), sesame) {
				return true
			}
			if shell != s {
				shell.Close()
			}
		}
	}
	return false
}

// TestNamesThatDecideThePolicy: finding 3 of the first security review.
func TestNamesThatDecideThePolicy(t *testing.T) {
	t.Parallel()
	inEachTier(t, func(t *testing.T, shell func(*testing.T, Config) *Shell) {
		for name, attack := range map[string]struct {
			path, read, write string // of the server
			before            string // made before it starts: a checked-in link
			scripts           []string
		}{
			"an activated venv":       {path: "WS/.venv/bin", scripts: []string{"mkdir .venv; ln -s HOME/.ssh .venv/bin; rm -rf $TMPDIR/* $TMPDIR", "cat .venv/bin/id_rsa"}},
			"a venv that is replaced": {path: "WS/.venv/bin", before: "mkdir -p WS/.venv/bin", scripts: []string{"rm -r .venv/bin; ln -s HOME/.ssh .venv/bin; rm -rf $TMPDIR", "cat .venv/bin/id_rsa"}},
			"a link above it":         {path: "WS/.venv/bin", before: "mkdir -p WS/.venv/bin", scripts: []string{"mv .venv old; ln -s HOME .venv; ln -s .ssh HOME/bin; rm -rf $TMPDIR", "cat .venv/.ssh/id_rsa"}},
			"node_modules":            {path: "WS/node_modules/.bin", scripts: []string{"mkdir node_modules; ln -s HOME/.ssh node_modules/.bin", "cat node_modules/.bin/id_rsa"}},
			"a checked-in link":       {path: "WS/tools", before: "ln -s HOME/.ssh WS/tools", scripts: []string{"cat tools/id_rsa"}},
			"--allow-read inside":     {read: "WS/data", before: "mkdir WS/data", scripts: []string{"rmdir data; ln -s HOME/.ssh data; rm -rf $TMPDIR", "cat data/id_rsa"}},
			"--allow-read a link":     {read: "WS/data", before: "ln -s HOME/.ssh WS/data", scripts: []string{"cat data/id_rsa"}},
			"--allow-write a cache":   {write: "HOME/.npm", before: "mkdir HOME/.npm", scripts: []string{"ln -s HOME/.ssh HOME/.npm/_cacache; rm -rf $TMPDIR", "cat HOME/.npm/_cacache/id_rsa"}},
		} {
			if testlevel.Quick() && name != "an activated venv" {
				continue
			}
			t.Run(name, func(t *testing.T) {
				v := newVictim(t)
				fill := strings.NewReplacer("HOME", v.home, "WS", v.ws).Replace
				if attack.before != "" {
					free, _ := newShell(t, Config{Dir: v.ws, Sandbox: Off})
					if res := run(t, free, sh(fill(attack.before))); res.ExitCode != 0 {
						t.Fatalf("%s", res.Stderr.Head)
					}
				}
				cfg := Config{Dir: v.ws, Env: v.env(fill(attack.path))}
				if attack.read != "" {
					cfg.AllowRead = []string{fill(attack.read)}
				}
				if attack.write != "" {
					cfg.AllowWrite = []string{fill(attack.write)}
				}
				var scripts []string
				for _, script := range attack.scripts {
					scripts = append(scripts, fill(script)+"; cat "+v.secret)
				}
				if leaks(t, shell(t, cfg), scripts...) {
					t.Error("the command got the key")
				}
				free := cfg
				free.Sandbox = Off
				open, _ := newShell(t, free)
				if !leaks(t, open, scripts[len(scripts)-1]) {
					t.Error("without the sandbox it does not get it either: the test proves nothing")
				}
			})
		}
	})
}

// TestParentOfTheWorkspace: whoever may write the parent of the workspace may put
// anything in its place, and gains nothing.
func TestParentOfTheWorkspace(t *testing.T) {
	inEachTier(t, func(t *testing.T, shell func(*testing.T, Config) *Shell) {
		v := newVictim(t)
		parent := filepath.Join(v.dir, "projects")
		ws := filepath.Join(parent, "ws")
		if err := os.MkdirAll(ws, 0o755); err != nil {
			t.Fatal(err)
		}
		profile := filepath.Join(v.home, ".profile")
		cfg := Config{Dir: ws, Env: v.env("/bin"), AllowWrite: []string{parent}}
		s := shell(t, cfg)
		swap := fmt.Sprintf("cd %s && mv ws old; ln -s %s ws; rm -rf $TMPDIR", parent, v.home)
		write := fmt.Sprintf("cat %s; echo pwned >> %s/ws/.profile", v.secret, parent)
		for _, script := range []string{swap, write} {
			for _, shell := range []*Shell{s, s.c.NewShell()} {
				res, err := shell.Run(t.Context(), Command{Name: "sh", Args: []string{"-c", script}, Dir: parent, Stdout: true, Stderr: true})
				if strings.Contains(string(res.Stdout.Head), sesame) {
					t.Errorf("%v %s", err, res.Stdout.Head)
				}
			}
		}
		if _, err := os.Stat(profile); err == nil {
			t.Error("the command wrote in HOME")
		}
		held := s.c.cfg.Sandbox == Isolate // there the workspace stays where it is
		if target, err := os.Readlink(ws); !held && (err != nil || target != v.home) {
			t.Errorf("the swap was not carried out: %s, %v", target, err)
		} else if held && err == nil {
			t.Errorf("the workspace was moved away for %s", target)
		}
		cfg.Sandbox = Off
		free, _ := newShell(t, cfg)
		for _, script := range []string{"[ -L " + ws + " ] || { " + swap + "; }", write} {
			run(t, free, Command{Name: "sh", Args: []string{"-c", script}, Dir: parent})
		}
		if _, err := os.Stat(profile); err != nil {
			t.Error("without the sandbox it cannot either: the test proves nothing")
		}
	})
}

// TestPrivateDirectoriesAreNotReplaced: finding 2. A command that puts links in
// the place of its private directories leads the server nowhere.
func TestPrivateDirectoriesAreNotReplaced(t *testing.T) {
	inEachTier(t, func(t *testing.T, shell func(*testing.T, Config) *Shell) {
		v := newVictim(t)
		s := shell(t, Config{Dir: v.ws, Env: v.env("/bin")})
		start := func() Command {
			c := sh("true")
			c.Startup = &Startup{Var: "ENV", Name: "start", Text: "# of the server\n"}
			return c
		}
		before := entries(t, v.home)
		for _, script := range []string{
			"d=$(dirname $TMPDIR); mv $TMPDIR $d/gone; ln -s HOME $TMPDIR; rm -rf $TMPDIR; ln -s HOME $d/tmp",
			"d=$(dirname $TMPDIR); rm -rf ~ ; ln -s HOME $d/home; mv $d/etc $d/old; ln -s HOME $d/etc",
			"d=$(dirname $TMPDIR); mv $d $d-gone; ln -s HOME $d",
			"rm -rf $TMPDIR/* ; ln -s HOME $TMPDIR/tmp; echo x > $(dirname $TMPDIR)/etc/passwd",
		} {
			run(t, s, sh(strings.ReplaceAll(script, "HOME", v.home)))
			if res := run(t, s, start()); res.ExitCode != 0 {
				t.Errorf("after %s: %s", script, res.Stderr.Head)
			}
			if after := entries(t, v.home); after != before {
				t.Fatalf("%s: the server made %s, before there was %s", script, after, before)
			}
		}
		s.Close()
		if after := entries(t, v.home); after != before {
			t.Errorf("at its end the server left %s of %s", after, before)
		}
		free, _ := newShell(t, Config{Dir: v.ws, Env: v.env("/bin"), Sandbox: Off})
		if res := run(t, free, sh("d=$(dirname $TMPDIR); rm -rf $TMPDIR; ln -s "+v.home+" $d/tmp; ls $d/tmp/ws")); res.ExitCode != 0 {
			t.Errorf("without the sandbox it cannot either: the test proves nothing: %s", res.Stderr.Head)
		}
	})
}

func entries(t *testing.T, dir string) string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// TestStartupFilesAreNotRaced: a daemon of the session that plants links where the
// server is about to write never wins, for it cannot write there.
func TestStartupFilesAreNotRaced(t *testing.T) {
	inEachTier(t, func(t *testing.T, shell func(*testing.T, Config) *Shell) {
		v := newVictim(t)
		target := filepath.Join(v.home, ".profile")
		s := shell(t, Config{Dir: v.ws, Env: v.env("/bin")})
		run(t, s, sh(fmt.Sprintf(`(while :; do for d in $(dirname $TMPDIR)/etc/start-* $TMPDIR/.start-*; do ln -s %s $d/start; ln -s %[1]s $d/rc; done; done) >/dev/null 2>&1 &`, target)))
		for range 50 {
			c := sh("cat $ENV")
			c.Startup = &Startup{Var: "ENV", Name: "start", Text: "# of the server\n"}
			if res := run(t, s, c); string(res.Stdout.Head) != c.Startup.Text {
				t.Fatalf("%s %s", res.Stdout.Head, res.Stderr.Head)
			}
		}
		if _, err := os.Lstat(target); err == nil {
			t.Error("the server wrote through a link")
		}
	})
}

// TestTMPDIRInTheWorkspace: the session does not lie where commands can write.
func TestTMPDIRInTheWorkspace(t *testing.T) {
	inEachTier(t, func(t *testing.T, shell func(*testing.T, Config) *Shell) {
		v := newVictim(t)
		tmp := filepath.Join(v.ws, "tmp")
		if err := os.Mkdir(tmp, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("TMPDIR", tmp)
		s := shell(t, Config{Dir: v.ws, Env: v.env("/bin")})
		res := run(t, s, sh("echo $TMPDIR; rm -rf tmp; ln -s "+v.home+" tmp"))
		if where := strings.TrimSpace(string(res.Stdout.Head)); strings.HasPrefix(where, v.ws) || where == "" {
			t.Errorf("the session lies in %s", where)
		}
		before := entries(t, v.home)
		if leaks(t, s, "cat "+v.secret+" "+tmp+"/.ssh/id_rsa; touch "+tmp+"/x") || entries(t, v.home) != before {
			t.Error("a command reached HOME")
		}
		all := shell(t, Config{Dir: v.ws, Env: v.env("/bin"), AllowWrite: []string{"/tmp", "/var/tmp", os.Getenv("HOME")}})
		if where, err := all.c.confinement.newSessionDir(true); err == nil && !all.c.confinement.policy().Safe(filepath.Dir(where.Path)) {
			t.Errorf("the session lies in %s", where.Path)
		} else if err == nil {
			where.Remove()
		}
	})
}

// TestReopenedWorkspace: whoever may write the parent of the workspace cannot
// make the file tools open another directory in its place.
func TestReopenedWorkspace(t *testing.T) {
	for name, swap := range map[string]string{
		"the workspace": `while :; do mv ws old; mkdir ws; rmdir ws; ln -s HOME/.ssh ws; rm ws; mv old ws; done`,
		"its parent":    `cd ..; mv projects old; ln -s HOME projects`,
	} {
		t.Run(name, func(t *testing.T) {
			v := newVictim(t)
			parent := filepath.Join(v.dir, "projects")
			ws := filepath.Join(parent, "ws")
			if err := errors.Join(os.MkdirAll(ws, 0o755), os.WriteFile(filepath.Join(v.ws, "id_rsa"), []byte(sesame), 0o600)); err != nil {
				t.Fatal(err)
			}
			files, err := files.Open(ws, sandbox.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			defer files.Close()
			s, _ := newShell(t, Config{Dir: ws, Env: v.env("/bin"), AllowWrite: []string{v.dir}})
			run(t, s, Command{Name: "sh", Dir: parent, Args: []string{"-c", "(" + strings.ReplaceAll(swap, "HOME", v.home) + ") >/dev/null 2>&1 &"}})
			for range 3000 {
				if data, err := files.ReadFile("id_rsa", 1<<10); err == nil {
					t.Fatalf("read %q outside", data)
				}
			}
		})
	}
}
