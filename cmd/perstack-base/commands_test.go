package main

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCommands runs command lines in this process and looks at what they print or refuse.
func TestCommands(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	dir := t.TempDir()
	for name, text := range map[string]string{
		"notes.txt":               "one\ntwo\n",
		"token":                   "0123456789abcdef\n",
		"short":                   "0123\n",
		"good/SKILL.md":           "---\nname: good\ndescription: d\n---\nBody.\n",
		"bad/SKILL.md":            "---\nname: Bad\n---\n",
		".agents/skills/SKILL.md": "---\nname: skills\ndescription: d\n---\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, line, out, fault string
		env                    []string
	}{
		{"tools", "tools", "readTextFile (perstack)", "", nil},
		{"tools of a profile", "tools --tools vski", "read (vski): path [offset]", "", nil},
		{"tools as JSON", "tools --json --tools baseagent.read_file", `"name": "read_file"`, "", nil},
		{"tools as Markdown", "tools --markdown --read-only", "| `readTextFile` |", "", nil},
		{"a call", "call readTextFile notes.txt", `"content":"one\ntwo`, "", nil},
		{"a call by name", "call readTextFile path=notes.txt to=1", `"content":"one"`, "", nil},
		{"a call by JSON", `call readTextFile {"path":"notes.txt"}`, `"from":0`, "", nil},
		{"a call as JSON", "call readTextFile notes.txt --json", `"structuredContent"`, "", nil},
		{"an image is described", "call view_image notes.txt --tools baseagent", "not a supported image", "<nil>", nil},
		{"a call that fails", "call readTextFile none.txt", "does not exist", "<nil>", nil},
		{"a call of wrong type", "call readTextFile path=notes.txt to=many", "must be", "<nil>", nil},
		{"no tool", "call", "", "which tool?", nil},
		{"an unknown tool", "call readTextFil notes.txt", "", `Did you mean "readTextFile"?`, nil},
		{"arguments that are none", "call editTextFile a b", "", "is neither a JSON object nor key=value", nil},
		{"version", "version", "perstack-base ", "", nil},
		{"skills", "skills list", "skills  discovered", "", nil},
		{"skills as JSON", "skills list --json", `"trust":"discovered"`, "", nil},
		{"skills nowhere", "skills list --no-discover", "Looked nowhere", "", nil},
		{"a valid skill", "skills validate $DIR/good", "Valid skill: ", "", nil},
		{"an invalid skill", "skills validate $DIR/bad", "must be lowercase", "<nil>", nil},
		{"an invalid skill as JSON", "skills validate --json $DIR/bad", `"errors":[`, "<nil>", nil},
		{"no skill to validate", "skills validate", "", "name at least one skill directory", nil},
		{"a digest", "skills digest $DIR/good", "sha256:", "", nil},
		{"no digest", "skills digest $DIR/none", "", "none: ", nil},
		{"cache", "cache", "", "", nil},
		{"cache clear", "cache clear", "", "", nil},
		{"an unknown command", "tool", "", "unknown command \"tool\"; did you mean tools?", nil},
		{"a tool as a command", "readTextFile", "", "it is a tool: perstack-base call readTextFile", nil},
		{"an unknown flag", "tools --wrkspace x", "", "unknown flag --wrkspace; did you mean --workspace?", nil},
		{"a flag without its value", "tools --max-output", "", "--max-output needs a value: --max-output BYTES", nil},
		{"a flag of a program", "call exec ls -la", "", "-la is not a flag", nil},
		{"arguments where there are none", "version now", "", "takes no arguments", nil},
		{"too little output", "tools --max-output 10", "", "must be at least 256 bytes", nil},
		{"no number", "tools --max-output ten", "", "must be a number of bytes", nil},
		{"no time", "tools --timeout ten", "", "must be a time with its unit", nil},
		{"too long a time", "tools --timeout 48h", "", "must be from", nil},
		{"no image", "tools --container=", "", "must be the name of an image", nil},
		{"no choice", "tools --sandbox strickt", "", "must be auto, strict, landlock, isolate or off; did you mean strict?", nil},
		{"too little memory", "tools --max-memory 1", "", "must be a number of bytes, or of K, M, G or T", nil},
		{"no processes", "tools --max-processes 0", "", "must be a number of processes", nil},
		{"no processors", "tools --max-cpus x", "", "must be a number of processors", nil},
		{"nothing to read", "tools --allow-read /none/such", "", "there is no such file or directory, so it would permit nothing", nil},
		{"a level", "tools --log-level loud", "", "must be debug, info, warn or error", nil},
		{"a workspace that is not there", "tools --workspace $DIR/none", "", "cannot open the workspace", nil},
		{"flags of a server without one", "serve --listen :0", "", "needs --transport http or --transport sse", nil},
		{"a token that can be guessed", "serve --transport http --auth-token-file $DIR/short", "", "shorter than 16 characters", nil},
		{"no token file", "serve --transport http --auth-token-file $DIR/none", "", "--auth-token-file: ", nil},
		{"half a certificate", "serve --transport http --listen 127.0.0.1:0 --tls-cert $DIR/token", "", "--tls-cert and --tls-key go together", nil},
		{"no certificate", "serve --transport http --listen 127.0.0.1:0 --tls-cert $DIR/token --tls-key $DIR/token", "", "--tls-cert, --tls-key: ", nil},
		{"beyond loopback", "serve --transport http --listen 0.0.0.0:0", "", "refusing to listen on 0.0.0.0:0 without a token", nil},
		{"no address", "serve --transport http --listen nowhere", "", "must be HOST:PORT, :PORT or unix:PATH", nil},
		{"any page", "serve --transport http --allow-origin *", "", "needs a token", nil},
		{"nothing to ask", "healthcheck", "", "there is no server to ask", nil},
		{"nothing to ask, in an image", "healthcheck --stdio-ok", "", "", nil},
		{"no target", "doctor --reach nowhere", "", "must be a host and a port", nil},
		{"a flag by its variable", "tools", "read (vski)", "", []string{"PERSTACK_BASE_TOOLS=vski"}},
		{"a list by its variable", "tools --json", `"name": "read"`, "", []string{"PERSTACK_BASE_TOOLS=vski.read:vski.write"}},
		{"a variable that is refused", "tools", "", `PERSTACK_BASE_TIMEOUT="soon": must be a time`, []string{"PERSTACK_BASE_TIMEOUT=soon"}},
		{"a variable that is no truth", "tools", "", `PERSTACK_BASE_READ_ONLY="perhaps": must be true or false`, []string{"PERSTACK_BASE_READ_ONLY=perhaps"}},
		{"a variable that is misspelt", "version", "PERSTACK_BASE_WORKSPCE has no effect; did you mean PERSTACK_BASE_WORKSPACE?", "", []string{"PERSTACK_BASE_WORKSPCE=x"}},
		{"a short token by its variable", "serve --transport http", "", "PERSTACK_BASE_AUTH_TOKEN: the token is shorter", []string{"PERSTACK_BASE_AUTH_TOKEN=x"}},
		{"completion of a tool", "__complete call readT", "readTextFile", "", nil},
		{"completion of arguments", "__complete call readTextFile ", "path=", "", nil},
		{"completion of a list", "__complete --tools perstack,vski.r", "perstack,vski.read", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, entry := range c.env {
				name, value, _ := strings.Cut(entry, "=")
				t.Setenv(name, value)
			}
			args := strings.Split(strings.ReplaceAll(c.line, "$DIR", dir), " ")
			if !strings.Contains(c.line, "--workspace") && !strings.Contains(c.line, "--max-output") && args[0] != "__complete" {
				args = append(args, "--workspace", dir)
			}
			out, err := commandLine(t.Context(), args...)
			switch {
			case c.fault == "" && err != nil:
				t.Errorf("failed: %v\n%s", err, out)
			case c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)):
				t.Errorf("error %v, want one with %q", err, c.fault)
			}
			if !strings.Contains(out, c.out) {
				t.Errorf("printed %.600q, want %q in it", out, c.out)
			}
		})
	}
}

// commandLine runs one command line and returns what it prints on both streams.
func commandLine(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	cmd := rootCommand()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.ExecuteContext(ctx)
	return out.String(), err
}

// TestServeOverHTTP: a server listens, answers a health check, and ends with its context.
func TestServeOverHTTP(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv(tokenEnv, "0123456789abcdef")
	dir, err := os.MkdirTemp("/tmp", "pb") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	listen := unixPrefix + filepath.Join(dir, "s")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	args := []string{"--transport", "http", "--listen", listen, "--workspace", t.TempDir(), "--read-only", "--log-file", filepath.Join(dir, "log")}
	go func() {
		_, err := commandLine(ctx, args...)
		done <- err
	}()
	for {
		if _, err = commandLine(t.Context(), "healthcheck", "--listen", listen); err == nil {
			break
		}
		select {
		case err := <-done:
			t.Fatalf("the server ended: %v", err)
		default:
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("the server ended with %v", err)
	}
	if _, err := commandLine(t.Context(), "healthcheck", "--listen", listen); err == nil {
		t.Error("healthy without a server")
	}
}

// TestHealthURL: where the health of a server is asked for.
func TestHealthURL(t *testing.T) {
	for want, o := range map[string]web{
		"http://127.0.0.1:9/healthz":      {listen: ":9"},
		"http://127.0.0.1:8/healthz":      {listen: "0.0.0.0:8"},
		"http://host:7/healthz":           {listen: "host:7"},
		"http://localhost/healthz":        {listen: "unix:/run/x"},
		"https://[2001:db8::1]:6/healthz": {listen: "[2001:db8::1]:6", tlsCert: "c"},
	} {
		if got := o.healthURL(&http.Transport{}); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestCompletionsAreThere: who starts a server waits for no completions, and everybody
// else has them.
func TestCompletionsAreThere(t *testing.T) {
	for line, want := range map[string]bool{
		"serve": false, "serve --workspace .": false,
		"": true, "--help": true, "serve --help": true, "help serve": true, "completion bash": true, "__complete serve --sandbox ": true, "tools": true,
	} {
		if got := rootCommand(strings.Fields(line)...).CompletionOptions.DisableDefaultCmd; got == want {
			t.Errorf("completions of %q: %v, want %v", line, !got, want)
		}
	}
}
