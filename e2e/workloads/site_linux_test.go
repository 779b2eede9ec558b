package workloads

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// The deadlines are for machines under load: nothing here is a measurement.
const (
	callDeadline = 3 * time.Minute // of a command, which the server enforces
	hangGuard    = 4 * time.Minute // of an answer
)

// A person is who starts servers.
type person struct {
	name     string
	uid, gid int
}

// persons are the user who runs the test and, when that is root, an ordinary one.
func persons(t *testing.T) []person {
	t.Helper()
	self, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	found := []person{{self.Username, os.Getuid(), os.Getgid()}}
	if os.Getuid() != 0 {
		return found
	}
	passwd, err := os.ReadFile("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	other := person{"nobody", 65534, 65534}
	for line := range strings.Lines(string(passwd)) {
		field := strings.Split(line, ":")
		if uid, err := strconv.Atoi(field[2]); err == nil && uid >= 1000 && uid < 60000 {
			gid, _ := strconv.Atoi(field[3])
			other = person{field[0], uid, gid}
			break
		}
	}
	return append(found, other)
}

// A site is where one person's rows run in one mechanism.
type site struct {
	who       person
	mechanism string
	dir       string // holds home, ws, outside
	port      string // where a server listens that no session started
}

func newSite(t *testing.T, who person, mechanism string) *site {
	t.Helper()
	dir, err := os.MkdirTemp("", "workloads-")
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeAll(t, dir) })
	s := &site{who: who, mechanism: mechanism, dir: dir}
	s.mkdir(t, dir, s.home(), s.workspace(), s.outside())
	s.write(t, filepath.Join(s.home(), ".gitconfig"), gitconfig)
	s.write(t, filepath.Join(s.home(), "gitignore"), "ignored-everywhere\n")
	s.write(t, filepath.Join(s.home(), "included"), "[alias]\n\tlast = log -1 --format=%s\n")
	return s
}

const gitconfig = "[user]\n\tname = A User\n\temail = user@example.org\n[init]\n\tdefaultBranch = main\n" +
	"[include]\n\tpath = ~/included\n[core]\n\texcludesFile = ~/gitignore\n"

// removeAll removes also what Go's module cache holds read only.
func removeAll(t *testing.T, dir string) {
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o755)
		}
		return nil
	})
	if err := os.RemoveAll(dir); err != nil {
		t.Log(err)
	}
}

func (s *site) home() string      { return filepath.Join(s.dir, "home") }
func (s *site) workspace() string { return filepath.Join(s.dir, "ws") }
func (s *site) outside() string   { return filepath.Join(s.dir, "outside") }

// rowDir is the directory of a row.
func (s *site) rowDir(r row) string {
	if r.own() {
		return filepath.Join(s.dir, "own", r.slug())
	}
	return filepath.Join(s.workspace(), r.slug())
}

// mkdir makes directories of the person's.
func (s *site) mkdir(t *testing.T, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for ; len(dir) >= len(s.dir); dir = filepath.Dir(dir) {
			if err := os.Chown(dir, s.who.uid, s.who.gid); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (s *site) write(t *testing.T, path, text string) {
	t.Helper()
	s.mkdir(t, filepath.Dir(path))
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, s.who.uid, s.who.gid); err != nil {
		t.Fatal(err)
	}
}

// searchPath is the PATH of the system: what lies in the home of whoever runs the
// test is that user's, and may be closed to the other.
func searchPath() string {
	home, _ := os.UserHomeDir()
	var dirs []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if home == "" || !strings.HasPrefix(dir+"/", home+"/") {
			dirs = append(dirs, dir)
		}
	}
	return strings.Join(dirs, ":")
}

// environment is what the person's servers start from. HOME/ in more is the home directory.
func (s *site) environment(more []string) []string {
	more = slices.Clone(more)
	for i, entry := range more {
		more[i] = strings.ReplaceAll(entry, "HOME/", s.home()+"/")
	}
	return append([]string{"PATH=" + searchPath(), "HOME=" + s.home(), "USER=" + s.who.name, "LOGNAME=" + s.who.name,
		"LANG=C.UTF-8", "GOTOOLCHAIN=local", "GOFLAGS=-buildvcs=false"}, more...)
}

// certificates are the variables by which this machine has its tools trust what stands
// between them and a registry.
func certificates() (set []string) {
	for _, name := range []string{"NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "GOPROXY", "GOSUMDB"} {
		if value := os.Getenv(name); value != "" {
			set = append(set, name+"="+value)
		}
	}
	return set
}

// command prepares a program that the person starts.
func (s *site) command(ctx context.Context, dir string, env []string, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = dir, env
	if os.Getuid() != s.who.uid {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(s.who.uid), Gid: uint32(s.who.gid)}}
	}
	return cmd
}

// prepare makes what the row finds.
func (s *site) prepare(t *testing.T, r row) {
	t.Helper()
	dir := s.rowDir(r)
	s.mkdir(t, dir)
	for name, text := range r.files {
		s.write(t, filepath.Join(dir, name), text)
	}
	if r.before == "" {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), callDeadline)
	defer cancel()
	cmd := s.command(ctx, dir, s.environment(append(certificates(), "OUTSIDE="+s.outside(), "PORT="+s.port, "BINARY="+binary)), "sh", "-ec", r.before)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("preparing it outside fails: %v\n%s", err, out)
	}
}

// A server is one run of the binary.
type server struct {
	*client.Client
	site *site
}

// startFor runs the binary as a row wants it that has a server of its own.
func (s *site) startFor(t *testing.T, r row) server {
	t.Helper()
	workspace := filepath.Join(s.rowDir(r), r.workspace)
	if r.online {
		return s.start(t, workspace, append(certificates(), r.env...), "--network", "allow")
	}
	return s.start(t, workspace, r.env)
}

// start runs the binary for the site's person until the test ends.
func (s *site) start(t *testing.T, workspace string, env []string, more ...string) server {
	t.Helper()
	var stderr bytes.Buffer
	args := append([]string{"serve", "--sandbox", s.mechanism, "--workspace", workspace}, more...)
	c, err := client.NewStdioMCPClientWithOptions(binary, nil, args, transport.WithCommandFunc(
		func(_ context.Context, program string, _, args []string) (*exec.Cmd, error) {
			cmd := s.command(context.Background(), workspace, s.environment(env), program, args...)
			cmd.Stderr = &stderr
			return cmd, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil && t.Failed() {
			t.Logf("the server ends with %v: %s", err, stderr.String())
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), hangGuard)
	defer cancel()
	hello := mcp.InitializeRequest{}
	hello.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	hello.Params.ClientInfo = mcp.Implementation{Name: "workloads", Version: "1"}
	if _, err := c.Initialize(ctx, hello); err != nil {
		t.Fatalf("the server does not start: %v %s", err, stderr.String())
	}
	return server{c, s}
}

// An answer is what exec says.
type answer struct {
	Output, Stdout, Stderr string
	Error, Code, Hint      string
}

func (a answer) String() string {
	return fmt.Sprintf("%s%s\n%s%s%s\nhint: %s", a.Error, a.Code, a.Output, a.Stdout, a.Stderr, a.Hint)
}

// run has the server run a shell line.
func (s server) run(t *testing.T, line, cwd string) (a answer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hangGuard)
	defer cancel()
	call := mcp.CallToolRequest{}
	call.Params.Name = "exec"
	call.Params.Arguments = map[string]any{
		"command": "sh", "args": []string{"-ec", line}, "cwd": cwd, "stdout": true, "stderr": true,
		"env":     map[string]string{"OUTSIDE": s.site.outside(), "PORT": s.site.port},
		"timeout": callDeadline.Milliseconds(),
	}
	began := time.Now()
	result, err := s.CallTool(ctx, call)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.2f s: %s", time.Since(began).Seconds(), line) // to be read, never compared
	text, ok := result.Content[0].(mcp.TextContent)
	if !ok {
		t.Fatalf("the answer begins with a %T", result.Content[0])
	}
	if err := json.Unmarshal([]byte(text.Text), &a); err != nil {
		t.Fatalf("%s: %v", text.Text, err)
	}
	return a
}
