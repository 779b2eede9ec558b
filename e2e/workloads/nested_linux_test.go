package workloads

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// ask is a client: it starts a server over stdio in ./inner, with a mode of its sandbox,
// has it run a shell line, and shows the text of the answer.
const ask = `import json, os, subprocess, sys
mode, line = sys.argv[1:3]
os.makedirs("inner", exist_ok=True)
server = subprocess.Popen(["./perstack-base", "--sandbox", mode, "--workspace", os.path.abspath("inner")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def send(message):
    server.stdin.write((json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode())
    server.stdin.flush()
def request(id, method, params):
    send({"id": id, "method": method, "params": params})
    while True:
        answer = json.loads(server.stdout.readline())
        if answer.get("id") == id:
            return answer
request(1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "ask", "version": "1"}})
send({"method": "notifications/initialized"})
answer = request(2, "tools/call", {"name": "exec", "arguments": {
    "command": "sh", "args": ["-ec", line], "cwd": "", "env": {}, "stdout": True, "stderr": True, "timeout": 120000}})
print(json.loads(answer["result"]["content"][0]["text"]))
server.stdin.close()
print("ended with", server.wait())
`

// inside is what commands of the inner server do, and show.
const (
	inside      = "ulimit -c; i=0; while [ $i -lt 20 ]; do /bin/true; i=$((i+1)); done; echo $i inside > a; cat a; cat ../../outside-of-inner 2> /dev/null || echo kept in"
	insideShows = "20 inside\\nkept in"
)

// nestings are the modes of a server in a command of another, and what it says.
var nestings = []struct {
	mode  string
	shows string
}{
	{"auto", insideShows}, {"strict", insideShows}, {"landlock", insideShows},
	{"isolate", "commands are refused because they cannot be confined here: no namespaces: the system does not permit them"},
	{"off", "20 inside\\nreached"},
}

// eachSite runs a test for every person in each mechanism that works here.
func eachSite(t *testing.T, test func(t *testing.T, s *site)) {
	for _, mechanism := range mechanisms {
		for _, who := range persons(t) {
			t.Run(mechanism+"/"+who.name, func(t *testing.T) {
				s := newSite(t, who, mechanism)
				if out, err := s.command(t.Context(), s.workspace(), s.environment(nil), binary, "doctor", "--sandbox", mechanism).CombinedOutput(); err != nil {
					t.Skipf("the mechanism is not to be had here: %v\n%s", err, out)
				}
				test(t, s)
			})
		}
	}
}

// nest lays down what servers in commands need, in the directory "nest" of the workspace.
func (s *site) nest(t *testing.T) (dir string) {
	t.Helper()
	if lookPath("python3") == "" {
		t.Skip("this machine has no python3")
	}
	text, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(s.workspace(), "nest")
	s.write(t, filepath.Join(dir, "perstack-base"), string(text))
	s.write(t, filepath.Join(dir, "ask.py"), ask)
	s.write(t, filepath.Join(s.workspace(), "outside-of-inner"), "reached\n")
	return dir
}

// TestNested: a server in a command of another runs commands in every mode, confined once
// more where it says so, or says why it refuses.
func TestNested(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.nest(t)
		outer := s.start(t, s.workspace(), nil)
		for _, n := range nestings {
			t.Run(n.mode, func(t *testing.T) {
				a := outer.run(t, fmt.Sprintf("timeout 150 python3 ask.py %s '%s'", n.mode, inside), "nest")
				if a.Code != "" || !strings.Contains(a.Output, n.shows) || !strings.Contains(a.Output, "ended with 0") {
					t.Error(a)
				}
			})
		}
	})
}

// lessBy is what doctor says of what a filter with a listener around it takes away.
var lessBy = map[string]string{"landlock": "permits no seccomp listener"}

// TestGitNested: git works in a server in a command, or is refused in words where a filter
// around that has a listener already.
func TestGitNested(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.nest(t)
		line := "touch -d yesterday a && chmod 600 a && stat -c %a a && git init -q && git add a && git commit -qm first && git log --format=%s"
		a := s.start(t, s.workspace(), nil).run(t, fmt.Sprintf("timeout 150 python3 ask.py strict '%s'", line), "nest")
		shows := map[string]string{"isolate": `600\nfirst\n`, "landlock": "for which another sandbox around this server leaves no judge"}
		if a.Code != "" || !strings.Contains(a.Output, shows[s.mechanism]) {
			t.Error(a)
		}
	})
}

// TestDoctorNested: doctor in a command ends, proves what there is, and says what is less.
func TestDoctorNested(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.nest(t)
		outer := s.start(t, s.workspace(), nil)
		for _, c := range []struct {
			mode  string
			shows []string
		}{
			{"auto", []string{"confined: landlock abi", lessBy[s.mechanism], "not taken", "proven", "doctor ended with 0"}},
			{"isolate", []string{"NOT confined: no namespaces: the system does not permit them", "doctor ended with 1"}},
		} {
			a := outer.run(t, fmt.Sprintf("code=0; timeout 150 ./perstack-base doctor --sandbox %s || code=$?; echo doctor ended with $code", c.mode), "nest")
			for _, want := range c.shows {
				if a.Code != "" || !strings.Contains(a.Output, want) {
					t.Errorf("%s: it does not show %q: %v", c.mode, want, a)
				}
			}
		}
	})
}

// TestKillNested: the end of a command is that of the server in it, and of all that its
// commands started.
func TestKillNested(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		dir := s.nest(t)
		outer := s.start(t, s.workspace(), nil)
		for _, mode := range []string{"auto", "off"} {
			t.Run(mode, func(t *testing.T) {
				inner := filepath.Join(dir, "inner")
				seconds := strconv.Itoa(1_000_000 + os.Getpid()) // tells them from all others
				line := fmt.Sprintf("exec python3 ask.py %s \"(setsid sleep %[2]s > /dev/null 2>&1 &); setsid sleep %[2]s\"", mode, seconds)
				for limit, all := 4*time.Second, false; !all; limit *= 2 {
					if limit > callDeadline {
						t.Fatal("the inner server and its commands never ran together")
					}
					ended := make(chan answer)
					go func() { ended <- outer.runFor(t, line, "nest", limit) }()
					var a answer
					for over := false; !over; {
						select {
						case a = <-ended:
							over = true
						case <-time.After(50 * time.Millisecond):
							all = all || len(running(t, "--workspace\x00"+inner)) > 0 && len(running(t, "sleep\x00"+seconds)) > 1
						}
					}
					if a.Code != "timed_out" {
						t.Fatal(a)
					}
				}
				left := func() []string { return append(running(t, "--workspace\x00"+inner), running(t, seconds)...) }
				for deadline := time.Now().Add(time.Minute); len(left()) > 0 && time.Now().Before(deadline); {
					time.Sleep(50 * time.Millisecond)
				}
				if l := left(); len(l) > 0 {
					t.Errorf("these outlive the command: %q", l)
				}
			})
		}
	})
}

// runFor is run with a deadline of the command's own.
func (s server) runFor(t *testing.T, line, cwd string, limit time.Duration) (a answer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit+hangGuard)
	defer cancel()
	call := mcp.CallToolRequest{}
	call.Params.Name = "exec"
	call.Params.Arguments = map[string]any{"command": "sh", "args": []string{"-ec", line}, "cwd": cwd,
		"stdout": true, "stderr": true, "env": map[string]string{}, "timeout": limit.Milliseconds()}
	result, err := s.CallTool(ctx, call)
	if err != nil {
		return answer{Error: err.Error()}
	}
	text, _ := result.Content[0].(mcp.TextContent)
	if err := json.Unmarshal([]byte(text.Text), &a); err != nil {
		return answer{Error: text.Text + ": " + err.Error()}
	}
	return a
}

// running lists the command lines of processes that have a text in them.
func running(t *testing.T, text string) (found []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Error(err)
	}
	for _, e := range entries {
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if strings.Contains(string(line), text) {
			found = append(found, e.Name()+" "+string(line))
		}
	}
	return found
}
