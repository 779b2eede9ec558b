package vski_test

import (
	"context"
	"encoding/json"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/server"
)

func TestMain(m *testing.M) {
	process.Helpers()
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "caches-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		os.Setenv("XDG_CACHE_HOME", dir) // nobody's own caches are touched
		return m.Run()
	}())
}

type result struct {
	Success  bool
	Error    *string
	Stdout   string
	Stderr   string
	ExitCode int  `json:"exit_code"`
	TimedOut bool `json:"timed_out"`
}

// world is a server whose home directory is the test's own.
type world struct {
	*testing.T
	home, ws string
	server   *server.Server
}

func newWorld(t *testing.T, mode process.Mode) *world {
	t.Helper()
	return newWorldAt(t, server.Config{Workspace: t.TempDir(), Sandbox: mode}, t.TempDir())
}

func newWorldAt(t *testing.T, cfg server.Config, home string) *world {
	t.Helper()
	w := &world{T: t, home: home, ws: cfg.Workspace}
	t.Setenv("HOME", w.home)
	t.Setenv("ZDOTDIR", "")
	os.Unsetenv("ZDOTDIR")
	cfg.Tools = []string{"vski"}
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	w.server = s
	return w
}

func (w *world) rc(shell, text string) {
	w.Helper()
	if err := os.WriteFile(filepath.Join(w.home, "."+shell+"rc"), []byte(text), 0o644); err != nil {
		w.Fatal(err)
	}
}

func (w *world) exec(ctx context.Context, args map[string]any) (r result) {
	w.Helper()
	answer, err := w.server.Call(ctx, "exec", args)
	if err != nil {
		w.Fatal(err)
	}
	text := answer.Content[0].(mcp.TextContent).Text
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		w.Fatalf("%v: %s", err, text)
	}
	if answer.IsError != (r.Error != nil) {
		w.Errorf("isError is %v: %s", answer.IsError, text)
	}
	return r
}

// eachShell runs a test for every shell with rc files that is installed.
func eachShell(t *testing.T, do func(*world, string)) {
	found := false
	for _, shell := range []string{"bash", "zsh"} {
		if _, err := osexec.LookPath(shell); err != nil {
			continue
		}
		found = true
		t.Run(shell, func(t *testing.T) { do(newWorld(t, process.Off), shell) })
	}
	if !found {
		t.Skip("needs bash or zsh")
	}
}

const probe = `hello; echo "$PLAIN|$FROM_CALL|$#|$?"; trap 'echo trapped' EXIT; exit 5`

// However the rc file ends, the command runs, sees what it set, and decides the
// exit code.
func TestRCFile(t *testing.T) {
	const defines = "PLAIN=plain; export FROM_CALL=rc; hello() { echo 'hello from the rc'; }\necho noise; echo noise >&2\n"
	for name, end := range map[string]string{
		"as usual": "", "fails": "false", "returns": "return 3", "guard": "[[ $- == *i* ]] || return", "exits": "exit 7", "exits with 0": "exit",
		"set -e": "set -e\nfalse", "set -u": "set -u; echo $NO_SUCH_VARIABLE",
		"elsewhere": "cd /", "its own EXIT trap": "trap 'echo bye; exit 9' EXIT", "ends in a child": "(exit 3)",
	} {
		t.Run(name, func(t *testing.T) {
			eachShell(t, func(w *world, shell string) {
				w.rc(shell, defines+end+"\n")
				command := probe + "\n"
				if name == "elsewhere" {
					command = `[ "$PWD" = "$WS" ] || exit 99; ` + command
				}
				real, _ := filepath.EvalSymlinks(w.ws)
				r := w.exec(t.Context(), map[string]any{"command": command, "shell": shell,
					"env": map[string]any{"FROM_CALL": "it's\nmine", "WS": real}})
				trapped := "trapped\n"
				if shell == "zsh" && strings.HasPrefix(name, "exits") {
					trapped = "" // zsh runs no EXIT trap of a subshell of one
				}
				if want := "hello from the rc\nplain|it's\nmine|0|0\n" + trapped; r.Stdout != want || r.Stderr != "" || r.ExitCode != 5 {
					t.Errorf("%s: got %+v, want %q", shell, r, want)
				}
			})
		})
	}
}

// An rc file that fails for good neither keeps the command from running nor
// makes it run twice.
func TestRCFileFailsForGood(t *testing.T) {
	eachShell(t, func(w *world, shell string) {
		for _, rc := range []string{"set -u\necho $NO_SUCH_VARIABLE", ": ${NO_SUCH_VARIABLE:?}", "if", "exit 3", "set -e; false"} {
			w.rc(shell, rc+"\n")
			if r := w.exec(t.Context(), map[string]any{"command": "echo once; (exit 4)", "shell": shell}); r.Stdout != "once\n" || r.ExitCode != 4 {
				t.Errorf("%s, %s: %+v", shell, rc, r)
			}
		}
	})
}

// The same command without the rc file shows that the test above proves something.
func TestWithoutRCFile(t *testing.T) {
	eachShell(t, func(w *world, shell string) {
		w.rc(shell, "PLAIN=plain\n")
		for _, args := range []map[string]any{
			{"source_rc": false},
			{"shell": "sh"},
		} {
			args["command"] = `echo "[$PLAIN]"`
			if args["shell"] == nil {
				args["shell"] = shell
			}
			if r := w.exec(t.Context(), args); r.Stdout != "[]\n" || r.ExitCode != 0 {
				t.Errorf("%v: %+v", args, r)
			}
		}
	})
}

// HOME and ZDOTDIR of the call do not say where the rc file is: commands may have
// made what they name.
func TestRCFileIsTheHosts(t *testing.T) {
	eachShell(t, func(w *world, shell string) {
		other := t.TempDir()
		if err := os.WriteFile(filepath.Join(other, "."+shell+"rc"), []byte("PLAIN=other\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		w.rc(shell, "PLAIN=plain\n")
		variable := map[string]string{"bash": "HOME", "zsh": "ZDOTDIR"}[shell]
		r := w.exec(t.Context(), map[string]any{"command": `echo "$PLAIN $` + variable + `"`, "shell": shell, "env": map[string]any{variable: other}})
		if r.Stdout != "plain "+other+"\n" {
			t.Errorf("%+v", r)
		}
	})
}

// Confined commands do not see other directories; the rc file is read all the same.
func TestRCFileWhereHomeIsHidden(t *testing.T) {
	w := newWorld(t, process.Auto)
	w.rc("bash", "PLAIN=plain\n")
	for _, env := range []map[string]any{{}, {"HOME": w.home}} {
		if r := w.exec(t.Context(), map[string]any{"command": "echo $PLAIN", "env": env}); r.Stdout != "plain\n" {
			t.Errorf("%v: %+v", env, r)
		}
	}
}

// What the rc file sets passes the filter of the environment, however it is set;
// what the call sets, and what --pass-env names, is there.
func TestRCFileSetsNoSecrets(t *testing.T) {
	eachShell(t, func(w *world, shell string) {
		w.rc(shell, "export API_KEY=sk-1 apiKey=sk-2 DB_URL=postgres://u:sk-3@h/d PLAIN=plain CALLS_TOKEN=sk-4 OUR_KEY=sk-5\n. "+w.home+"/more\n")
		if err := os.WriteFile(filepath.Join(w.home, "more"), []byte("export PGPASSWORD=sk-6 MORE_TOKEN=sk-7 MORE=more A_URL=http://a:sk-8@b/\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		r := w.exec(t.Context(), map[string]any{"command": "env", "shell": shell, "env": map[string]any{"CALLS_TOKEN": "mine"}})
		for _, want := range []string{"PLAIN=plain\n", "CALLS_TOKEN=mine\n", "MORE=more\n"} {
			if !strings.Contains(r.Stdout, want) {
				t.Errorf("%s: no %s in %s", shell, want, r.Stdout)
			}
		}
		if strings.Contains(r.Stdout, "sk-") || r.ExitCode != 0 || r.Stderr != "" {
			t.Errorf("%s: %+v", shell, r)
		}
	})
}

// An rc file that sets nothing leaves no trace.
func TestRCFileLeavesNoTrace(t *testing.T) {
	eachShell(t, func(w *world, shell string) {
		w.rc(shell, "")
		for _, command := range []string{
			"env | LC_ALL=C sort", "set", "trap; alias; echo $- $0 $#", "declare -f", "ls /proc/self/fd", "echo $?; echo \"$LINENO\"",
			"if", "exit 300", "kill -9 $$", "echo 'a\n\"b' | cat -A", `f() { return 4; }; f`, "trap 'echo t' EXIT", "no-such-program",
		} {
			args := map[string]any{"command": command, "shell": shell, "env": map[string]any{"A": "1", "b.c": "2", "IFS": "x"}}
			with := w.exec(t.Context(), args)
			args["source_rc"] = false
			without := w.exec(t.Context(), args)
			if a, b := comparable(with), comparable(without); a != b {
				t.Errorf("%s, %s: with the rc file\n%s\nwithout\n%s", shell, command, a, b)
			}
		}
	})
}

// comparable is a result without the variables in which a shell keeps account of
// what it ran: sourcing anything, however, changes those.
func comparable(r result) string {
	raw, _ := json.Marshal(r)
	var out []string
	for _, line := range strings.Split(strings.ReplaceAll(string(raw), `\n`, "\n"), "\n") {
		name, _, _ := strings.Cut(line, "=")
		switch strings.TrimPrefix(name, `{"Success":true,"Error":null,"Stdout":"`) {
		case "_", "SHLVL", "TMPDIR", "PPID", "$", "RANDOM", "SECONDS", "EPOCHSECONDS", "EPOCHREALTIME", "SRANDOM", "TTYIDLE",
			"BASH_ARGC", "PIPESTATUS", "pipestatus", "BASHPID", "!", "options", "HISTCMD", "'$'":
		default:
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// Time that is up, or a cancel, while the rc file runs: the command never starts,
// not even by way of EXIT traps.
func TestRCFileMeetsTheDeadline(t *testing.T) {
	testlevel.NotQuick(t, "waits for deadlines")
	eachShell(t, func(w *world, shell string) {
		for name, rc := range map[string]string{"sleeps": "sleep 60", "loops": "while :; do :; done", "waits for a stubborn child": "(trap '' TERM; sleep 60)"} {
			started := filepath.Join(w.ws, "started")
			w.rc(shell, "echo ran >> "+filepath.Join(w.ws, "rc-ran")+"\n"+rc+"\nexit 1\n")
			args := map[string]any{"command": "touch started", "shell": shell, "timeout": 1.0}
			if r := w.exec(t.Context(), args); !r.TimedOut || *r.Error != "Command timed out after 1 seconds" || r.ExitCode != -1 {
				t.Errorf("%s: %+v", name, r)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			args["timeout"] = 50.0
			if r := w.exec(ctx, args); r.Error == nil || r.TimedOut {
				t.Errorf("%s, cancelled: %+v", name, r)
			}
			cancel()
			if _, err := os.Stat(started); err == nil {
				t.Errorf("%s: the command was started", name)
			}
			if _, err := os.Stat(filepath.Join(w.ws, "rc-ran")); err != nil {
				t.Errorf("%s: the rc file was not read", name)
			}
			os.Remove(started)
		}
	})
}

// TestRCFileIsNoWayOut: finding 1 of the first security review. Whatever links
// and variables a command lays out, the server copies no file of the host for it.
func TestRCFileIsNoWayOut(t *testing.T) {
	const secret = "open sesame"
	for _, mode := range []process.Mode{process.Auto, process.Isolate} {
		if mode == process.Auto && testlevel.Quick() {
			continue // it takes the same way here
		}
		t.Run(string(mode), func(t *testing.T) {
			for name, lay := range map[string]func(w *world, target string) map[string]any{
				"HOME of the call": func(w *world, target string) map[string]any {
					w.link(target, "x/.bashrc", "x/.zshrc", "x/.zshenv")
					return map[string]any{"HOME": w.ws + "/x", "ZDOTDIR": w.ws + "/x"}
				},
				"ZDOTDIR outside": func(w *world, target string) map[string]any {
					return map[string]any{"HOME": filepath.Dir(target), "ZDOTDIR": filepath.Dir(target)}
				},
			} {
				t.Run(name, func(t *testing.T) {
					w := newWorld(t, mode)
					w.getsNothing(name, secret, lay)
				})
			}
			if testlevel.Quick() {
				return // the others are variants
			}
			t.Run("the workspace is HOME", func(t *testing.T) {
				home := t.TempDir()
				w := newWorldAt(t, server.Config{Workspace: home, Sandbox: mode}, home)
				w.getsNothing("link", secret, func(w *world, target string) map[string]any {
					w.link(target, ".bashrc", ".zshrc", ".zshenv")
					return nil
				})
			})
			t.Run("--allow-write HOME, flipping", func(t *testing.T) {
				home := t.TempDir()
				w := newWorldAt(t, server.Config{Workspace: t.TempDir(), Sandbox: mode, AllowWrite: []string{home}}, home)
				w.getsNothing("flip", secret, func(w *world, target string) map[string]any {
					w.exec(t.Context(), map[string]any{"command": "(while :; do ln -sfn " + target + " " + home + "/.bashrc; rm " + home + "/.bashrc; echo : > " + home + "/.bashrc; done) > /dev/null 2>&1 &", "source_rc": false})
					return nil
				})
			})
			t.Run("a shell that is called zsh", func(t *testing.T) {
				w := newWorld(t, mode)
				if err := os.WriteFile(filepath.Join(w.ws, "zsh"), []byte("#!/bin/sh\ncat \"$ZDOTDIR\"/* ~/.zshrc\n"), 0o755); err != nil {
					t.Fatal(err)
				}
				w.rc("zsh", "A_KEY='"+secret+"'\n")
				r := w.exec(t.Context(), map[string]any{"command": "true", "shell": "./zsh"})
				if strings.Contains(r.Stdout, secret) || !strings.Contains(r.Stdout, "A_KEY=") {
					t.Errorf("%+v", r)
				}
			})
		})
	}
}

// getsNothing fails when a command finds the content of a file outside in what
// the server laid down for it, and when it would not without the sandbox.
func (w *world) getsNothing(name, secret string, lay func(*world, string) map[string]any) {
	w.Helper()
	target := filepath.Join(w.TempDir(), "key")
	if err := os.WriteFile(target, []byte("# "+secret+"\n"), 0o600); err != nil {
		w.Fatal(err)
	}
	env := lay(w, target)
	for _, shell := range []string{"bash", "zsh"} {
		if _, err := osexec.LookPath(shell); err != nil {
			continue
		}
		for range 20 {
			r := w.exec(w.Context(), map[string]any{"shell": shell, "env": env,
				"command": "cat " + target + " $TMPDIR/.start-*/* $TMPDIR/../etc/start-*/*; true"})
			if strings.Contains(r.Stdout, secret) {
				w.Fatalf("%s, %s: the command got %q", name, shell, r.Stdout)
			}
		}
	}
	free, err := server.New(server.Config{Workspace: w.ws, Tools: []string{"vski"}, Sandbox: process.Off})
	if err != nil {
		w.Fatal(err)
	}
	defer free.Close()
	open := &world{T: w.T, home: w.home, ws: w.ws, server: free}
	if r := open.exec(w.Context(), map[string]any{"command": "cat " + target}); !strings.Contains(r.Stdout, secret) {
		w.Errorf("%s: without the sandbox it cannot be read either: %+v", name, r)
	}
}

func (w *world) link(target string, names ...string) {
	w.Helper()
	for _, name := range names {
		path := filepath.Join(w.ws, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			w.Fatal(err)
		}
		if err := os.Symlink(target, path); err != nil {
			w.Fatal(err)
		}
	}
}
