package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// cli runs the binary once and returns what it printed and its exit code.
func cli(t *testing.T, dir string, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = dir, &out, &errs, append(os.Environ(), env...)
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestCommandLine(t *testing.T) {
	dir := workspace(t)
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\ntwo\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		env    []string
		args   []string
		code   int
		stdout string // a part of it
		stderr string // a part of it; "" = nothing at all
	}{
		{"call with pairs", nil, []string{"call", "readTextFile", "path=a.txt", "from=1", "to=2"}, 0, `{"path":"a.txt","content":"two","from":1,"to":2}`, ""},
		{"call with JSON", nil, []string{"call", "readTextFile", `{"path":"a.txt","to":1}`}, 0, `"content":"one"`, ""},
		{"a text that looks like a number", nil, []string{"call", "writeTextFile", "path=7", "text=8"}, 0, `"text":"8"`, ""},
		{"a list", nil, []string{"call", "todo", `newTodos=["a"]`}, 0, `"title":"a"`, ""},
		{"whole result", nil, []string{"call", "--json", "todo"}, 0, `"structuredContent":{"todos":[]}`, ""},
		{"a tool that fails", nil, []string{"call", "readTextFile", "path=nope"}, 1, `"code":"not_found"`, ""},
		{"unknown tool", nil, []string{"call", "readTextfile"}, 2, "", `Did you mean "readTextFile"?`},
		{"no pair", nil, []string{"call", "todo", "x"}, 2, "", `"x" is neither a JSON object nor key=value`},
		{"no JSON", nil, []string{"call", "todo", "{x}"}, 2, "", "no JSON object"},
		{"tools", nil, []string{"tools"}, 0, "editTextFile", ""},
		{"tools as Markdown", nil, []string{"tools", "--markdown"}, 0, "| `todo` | *`newTodos`* *`completedTodos`* |", ""},
		{"tools as JSON", nil, []string{"tools", "--json"}, 0, `"inputSchema"`, ""},
		{"one tool", nil, []string{"tools", "--json", "--tools", "perstack.todo"}, 0, `"name": "todo"`, ""},
		{"unknown profile", nil, []string{"serve", "--tools", "perstak"}, 2, "", `there is no profile "perstak"`},
		{"unknown tool of a profile", nil, []string{"serve", "--tools", "perstack.x"}, 2, "", `profile perstack has no tool "x"; its tools are attemptCompletion`},
		{"nothing selected", nil, []string{"serve", "--tools", "perstack.todo,-perstack.todo"}, 2, "", "selects no tool"},
		{"unknown flag", nil, []string{"--workspce", "x"}, 2, "", "unknown flag: --workspce"},
		{"unknown command", nil, []string{"tols"}, 2, "", `unknown command "tols"`},
		{"no workspace", nil, []string{"--workspace", "nowhere"}, 2, "", "cannot open the workspace nowhere"},
		{"workspace is a file", nil, []string{"--workspace", "a.txt"}, 2, "", "cannot open the workspace a.txt"},
		{"bad level", nil, []string{"--log-level", "loud"}, 2, "", "must be debug, info, warn or error"},
		{"bad budget", nil, []string{"--max-output", "1"}, 2, "", "--max-output must be at least"},
		{"environment twin", []string{"PERSTACK_BASE_READ_ONLY=true"}, []string{"call", "writeTextFile", "path=x", "text=y"}, 2, "", "It is left out because this server is read-only"},
		{"flag beats environment", []string{"PERSTACK_BASE_TOOLS=nonsense"}, []string{"tools", "--tools", "perstack"}, 0, "todo", ""},
		{"bad environment", []string{"PERSTACK_BASE_MAX_OUTPUT=lots"}, []string{"tools"}, 2, "", `PERSTACK_BASE_MAX_OUTPUT="lots"`},
		{"version", nil, []string{"version"}, 0, "perstack-base ", ""},
		{"help", nil, []string{"--help"}, 0, "--read-only", ""},
		{"completion", nil, []string{"completion", "bash"}, 0, "__start_perstack-base", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			stdout, stderr, code := cli(t, dir, c.env, c.args...)
			if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) || (c.stderr == "") != (stderr == "") {
				t.Errorf("exit code %d\nstdout: %s\nstderr: %s", code, stdout, stderr)
			}
			if c.code == 2 && stdout != "" {
				t.Errorf("a refused command line must print nothing on stdout: %s", stdout)
			}
		})
	}
}

// TestHarmlessStarts: a runtime needs an argument to start a server; all of
// these speak MCP on stdio.
func TestHarmlessStarts(t *testing.T) {
	for _, args := range [][]string{nil, {"serve"}, {"--verbose"}, {"serve", "--log-level", "error"}} {
		c := start(t, workspace(t), args...)
		c.initialize()
		c.request("tools/list", nil)
		c.in.Close()
		if code := c.end(); code != 0 {
			t.Errorf("%q: exit code %d", args, code)
		}
	}
}

// TestLogFile: one line a call, and never what the call carried.
func TestLogFile(t *testing.T) {
	dir, log := workspace(t), filepath.Join(t.TempDir(), "log")
	c := start(t, dir, "serve", "--log-file", log)
	c.initialize()
	if _, err := c.call("writeTextFile", json.RawMessage(`{"path":"sesame.txt","text":"sesame"}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.call("exec", run("echo $X; exit 4", `env={"X":"sesame"}`)); err != nil {
		t.Fatal(err)
	}
	c.in.Close()
	c.end()
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(data, []byte("sesame")) {
		t.Errorf("the log tells what calls carried:\n%s", data)
	}
	var calls []string
	for line := range strings.Lines(string(data)) {
		var entry struct {
			Msg, Tool, Outcome string
			MS                 *float64
			Bytes              int
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if entry.Msg == "call" {
			calls = append(calls, entry.Tool+" "+entry.Outcome)
			if entry.MS == nil || entry.Bytes == 0 {
				t.Errorf("no duration or size: %s", line)
			}
		}
	}
	if strings.Join(calls, ", ") != "writeTextFile ok, exec error" {
		t.Errorf("the log tells of %q", calls)
	}
	if info, err := os.Stat(log); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the log file is for its owner alone: %v %v", info.Mode(), err)
	}
}

// TestStdoutGone: a client that closes its end of stdout ends the server like an end of input.
func TestStdoutGone(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "serve")
	cmd.Dir, cmd.Stdout = workspace(t), write
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	read.Close()
	if _, err := in.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n")); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}
