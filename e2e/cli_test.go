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
		{"no JSON", nil, []string{"call", "todo", "{x}"}, 2, "", "not a JSON object"},
		{"one value", nil, []string{"call", "readTextFile", "a.txt"}, 0, `"content":"one\ntwo\n"`, ""},
		{"what a runtime must send", nil, []string{"call", "exec", "cat", `args=["a.txt"]`}, 0, `{"output":"one\ntwo\n"}`, ""},
		{"an argument is missing", nil, []string{"call", "readTextFile"}, 1, `"code":"bad_input"`, "for example: perstack-base call readTextFile path=README.md"},
		{"an argument of the wrong type", nil, []string{"call", "readTextFile", "a.txt", "to=x"}, 1, `"code":"bad_input"`, "arguments of readTextFile: path [from] [to]"},
		{"flags of a program", nil, []string{"call", "exec", "ls", "-la"}, 2, "", `-la is not a flag; arguments of a tool are KEY=VALUE, as in args='["-la"]' (see perstack-base call --help)`},
		{"a path that is not there", nil, []string{"--allow-read", "nowhere"}, 2, "", "nowhere: there is no such file or directory, so it would permit nothing"},
		{"no tool", nil, []string{"call"}, 2, "", "which tool? As in: perstack-base call readTextFile README.md"},
		{"far from any tool", nil, []string{"call", "foo"}, 2, "", `Unknown tool "foo". Tools: `},
		{"tools", nil, []string{"tools"}, 0, "editTextFile", ""},
		{"tools as Markdown", nil, []string{"tools", "--markdown"}, 0, "| `todo` | *`newTodos`* *`completedTodos`* |", ""},
		{"tools as JSON", nil, []string{"tools", "--json"}, 0, `"inputSchema"`, ""},
		{"tools have arguments", nil, []string{"tools"}, 0, "readTextFile (perstack): path [from] [to]", ""},
		{"tools of other profiles", nil, []string{"tools"}, 0, "baseagent  apply_patch grep_files", ""},
		{"every profile", nil, []string{"tools", "--tools", "all"}, 0, "\n  vski  exec\n", ""},
		{"one tool", nil, []string{"tools", "--json", "--tools", "perstack.todo"}, 0, `"name": "todo"`, ""},
		{"unknown profile", nil, []string{"serve", "--tools", "perstak"}, 2, "", `there is no profile "perstak"`},
		{"unknown tool of a profile", nil, []string{"serve", "--tools", "perstack.x"}, 2, "", `profile perstack has no tool "x"; its tools are attemptCompletion`},
		{"nothing selected", nil, []string{"serve", "--tools", "perstack.todo,-perstack.todo"}, 2, "", "selects no tool"},
		{"unknown flag", nil, []string{"--workspce", "x"}, 2, "", "unknown flag --workspce; did you mean --workspace? (see perstack-base --help)"},
		{"unknown flag of a command", nil, []string{"call", "--jsn"}, 2, "", "unknown flag --jsn; did you mean --json? (see perstack-base call --help)"},
		{"unknown command", nil, []string{"tols"}, 2, "", `unknown command "tols"; did you mean tools? (see perstack-base --help)`},
		{"unknown subcommand", nil, []string{"skills", "lsit"}, 2, "", `unknown command "lsit"; did you mean list? (see perstack-base skills --help)`},
		{"a tool as command", nil, []string{"exec"}, 2, "", "it is a tool: perstack-base call exec"},
		{"a word too many", nil, []string{"tools", "x"}, 2, "", `perstack-base tools takes no arguments, but "x" was given`},
		{"unknown choice", nil, []string{"--transport", "htpp"}, 2, "", "--transport htpp: must be stdio, http or sse; did you mean http?"},
		{"unknown mode", nil, []string{"--sandbox", "on"}, 2, "", "--sandbox on: must be auto, strict, landlock, isolate or off\n"},
		{"no truth", nil, []string{"--read-only=maybe"}, 2, "", "--read-only maybe: must be true or false"},
		{"no value", nil, []string{"--timeout"}, 2, "", "--timeout needs a value: --timeout TIME"},
		{"time without a unit", nil, []string{"--timeout", "5"}, 2, "", "--timeout 5: must be a time with its unit, as in 90s"},
		{"time too long", nil, []string{"--timeout", "48h"}, 2, "", "--timeout 48h: must be from 1ms to 24h"},
		{"time too short", nil, []string{"--timeout", "500us"}, 2, "", "--timeout 500us: must be from 1ms to 24h"},
		{"no time at all", nil, []string{"--timeout", "0s"}, 2, "", "--timeout 0s: must be from 1ms to 24h"},
		{"size with a unit", nil, []string{"--max-output", "10k"}, 2, "", "--max-output 10k: must be a number of bytes, as in 131072"},
		{"address without a network", nil, []string{"--listen", ":8080"}, 2, "", "--listen (or PERSTACK_BASE_LISTEN) needs --transport http or --transport sse"},
		{"certificate without a network", nil, []string{"--tls-cert", "a.txt"}, 2, "", "--tls-cert (or PERSTACK_BASE_TLS_CERT) needs --transport http"},
		{"address without a network, by variable", []string{"PERSTACK_BASE_LISTEN=:8080"}, []string{"tools"}, 2, "", "needs --transport http"},
		{"health of nothing", nil, []string{"healthcheck"}, 2, "", "there is no server to ask"},
		{"health of an image on stdio", nil, []string{"healthcheck", "--stdio-ok"}, 0, "", ""},
		{"health of an address", nil, []string{"healthcheck", "--listen", "unix:nowhere"}, 1, "", "connect: "},
		{"where skills are looked for", nil, []string{"skills", "list", "--skills", "nowhere"}, 0, "nowhere (trusted, from --skills; does not exist)", ""},
		{"skills alone", nil, []string{"skills"}, 0, "Usage:", ""},
		{"no workspace", nil, []string{"--workspace", "nowhere"}, 2, "", "cannot open the workspace nowhere"},
		{"workspace is a file", nil, []string{"--workspace", "a.txt"}, 2, "", "cannot open the workspace a.txt"},
		{"bad level", nil, []string{"--log-level", "loud"}, 2, "", "must be debug, info, warn or error"},
		{"bad budget", nil, []string{"--max-output", "1"}, 2, "", "--max-output 1: must be at least 256 bytes"},
		{"environment twin", []string{"PERSTACK_BASE_READ_ONLY=true"}, []string{"call", "writeTextFile", "path=x", "text=y"}, 2, "", "It is left out because this server is read-only"},
		{"flag beats environment", []string{"PERSTACK_BASE_TOOLS=nonsense"}, []string{"tools", "--tools", "perstack"}, 0, "todo", ""},
		{"bad environment", []string{"PERSTACK_BASE_MAX_OUTPUT=lots"}, []string{"tools"}, 2, "", `PERSTACK_BASE_MAX_OUTPUT="lots": must be a number of bytes`},
		{"flags of one command have no variable", []string{"PERSTACK_BASE_JSON=true", "PERSTACK_BASE_MARKDOWN=true", "PERSTACK_BASE_VERSION=true"}, []string{"tools"}, 0, "todo (perstack)", ""},
		{"a list as PATH has it", []string{"PERSTACK_BASE_TOOLS=perstack.todo" + string(os.PathListSeparator) + "vski.read"}, []string{"tools"}, 0, "read (vski)", ""},
		{"empty variables", []string{"PERSTACK_BASE_LISTEN=", "PERSTACK_BASE_LOG_LEVEL=", "PERSTACK_BASE_READ_ONLY=", "PERSTACK_BASE_TIMEOUT="}, []string{"tools"}, 0, "exec", ""},
		{"a misspelt variable", []string{"PERSTACK_BASE_READONLY=true"}, []string{"tools"}, 0, "exec", "PERSTACK_BASE_READONLY has no effect; did you mean PERSTACK_BASE_READ_ONLY?"},
		{"hosts with ports", []string{"PERSTACK_BASE_TRANSPORT=http", "PERSTACK_BASE_ALLOW_HOST=a.example:80,b.example:443"}, []string{"tools"}, 0, "exec", ""},
		{"version flag", nil, []string{"--version"}, 0, "perstack-base ", ""},
		{"version", nil, []string{"version"}, 0, "perstack-base ", ""},
		{"help", nil, []string{"--help"}, 0, "--read-only", ""},
		{"completion", nil, []string{"completion", "bash"}, 0, "__start_perstack-base", ""},
		{"completion of a value", nil, []string{"__completeNoDesc", "--sandbox", "s"}, 0, "strict\n", "Completion ended"},
		{"completion of a profile", nil, []string{"__completeNoDesc", "--tools", "base"}, 0, "baseagent\nbaseagent.apply_patch\n", "Completion ended"},
		{"completion of a list", nil, []string{"__completeNoDesc", "--tools", "perstack,-vski.e"}, 0, "perstack,-vski.exec\n", "Completion ended"},
		{"completion of a tool", nil, []string{"__completeNoDesc", "call", "ex"}, 0, "exec\n", "Completion ended"},
		{"completion of an argument", nil, []string{"__completeNoDesc", "call", "readTextFile", "path=a.txt", ""}, 0, "from=\nto=\n", "Completion ended"},
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

// TestHomeInPaths: a client's configuration is read by no shell, so ~/ is expanded here.
func TestHomeInPaths(t *testing.T) {
	home := workspace(t)
	for _, dir := range []string{"ws/deep", "skills/demo", "more"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	skill := "---\nname: demo\ndescription: A demonstration.\n---\nDo it.\n"
	if err := os.WriteFile(filepath.Join(home, "skills/demo/SKILL.md"), []byte(skill), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "ws/a.txt"), []byte("at home"), 0o644); err != nil {
		t.Fatal(err)
	}
	env := []string{"HOME=" + home, "USERPROFILE=" + home}
	list := string(os.PathListSeparator)
	for _, c := range []struct {
		env  []string
		args []string
		want string
	}{
		{nil, []string{"call", "readTextFile", "a.txt", "--workspace", "~/ws"}, "at home"},
		{[]string{"PERSTACK_BASE_WORKSPACE=~/ws"}, []string{"call", "readTextFile", "a.txt"}, "at home"},
		{nil, []string{"tools", "--workspace", "~/ws", "--allow-read", "~/ws,~/more", "--allow-write", "~/more", "--log-file", "~/log"}, "exec"},
		{nil, []string{"skills", "list", "--skills", "~/skills"}, "demo   trusted"},
		{[]string{"PERSTACK_BASE_SKILLS=~/more" + list + "~/skills"}, []string{"skills", "list"}, "demo   trusted"},
		{[]string{"PERSTACK_BASE_SKILLS=~/more,~/skills"}, []string{"skills", "list"}, "demo   trusted"},
		{[]string{"PERSTACK_BASE_ALLOW_READ=~/more" + list + "~/skills"}, []string{"tools"}, "exec"},
	} {
		stdout, stderr, code := cli(t, home, append(env, c.env...), c.args...)
		if code != 0 || !strings.Contains(stdout, c.want) {
			t.Errorf("%v %q: exit code %d\n%s%s", c.env, c.args, code, stdout, stderr)
		}
	}
	if _, err := os.Stat(filepath.Join(home, "log")); err != nil {
		t.Error(err)
	}
	if _, stderr, code := cli(t, home, append(env, "PERSTACK_BASE_ALLOW_READ=~/more"+list+"~/none"), "tools"); code != 2 || !strings.Contains(stderr, filepath.Join(home, "none")) {
		t.Errorf("a path of a list that does not exist: exit code %d: %s", code, stderr)
	}
}

// TestUnconfinedIsSaidOnce: the warning is for a server that can run commands.
func TestUnconfinedIsSaidOnce(t *testing.T) {
	for _, c := range []struct {
		args []string
		want bool
	}{
		{nil, true},
		{[]string{"--read-only"}, false},
		{[]string{"--tools", "perstack.readTextFile,perstack.todo"}, false},
		{[]string{"--tools", "skills.skill_load"}, false},
		{[]string{"--tools", "skills.skill_load", "--skills", "."}, true}, // its hooks are commands
	} {
		_, stderr, code := cli(t, workspace(t), nil, append([]string{"serve", "--sandbox", "off"}, c.args...)...)
		if got := strings.Contains(stderr, "commands are not confined"); code != 0 || got != c.want {
			t.Errorf("%q: exit code %d, %s", c.args, code, stderr)
		}
	}
}
