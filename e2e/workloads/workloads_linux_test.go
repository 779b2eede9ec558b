package workloads

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
)

var update = flag.Bool("update", false, "write docs/workloads.md instead of comparing")

// binary is the path of the server under test, built as a release is.
var binary string

func TestMain(m *testing.M) {
	if flag.Parse(); !testlevel.All() {
		fmt.Println("no workloads are run: PERSTACK_BASE_ALL=1, or -run, has them run")
		return
	}
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "workloads-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "perstack-base")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "../../cmd/perstack-base")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	if err == nil {
		err = os.Chmod(dir, 0o755) // for the other user
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "building the binary: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// mechanisms are the ways to confine commands. They are told apart where a refusal is.
var mechanisms = []string{"landlock", "isolate"}

// asked reports whether a word stands in PERSTACK_BASE_WORKLOADS.
func asked(word string) bool {
	return slices.Contains(strings.Split(os.Getenv("PERSTACK_BASE_WORKLOADS"), ","), word)
}

func TestWorkloads(t *testing.T) {
	one := slices.ContainsFunc(mechanisms, asked)
	for _, mechanism := range mechanisms {
		for _, who := range persons(t) {
			t.Run(fmt.Sprintf("%s/%s", mechanism, who.name), func(t *testing.T) {
				if one && !asked(mechanism) {
					t.Skip("PERSTACK_BASE_WORKLOADS asks for the other one")
				}
				testSite(t, newSite(t, who, mechanism))
			})
		}
	}
}

// testSite runs all rows for one person in one mechanism.
func testSite(t *testing.T, s *site) {
	if out, err := s.command(t.Context(), s.workspace(), s.environment(nil), binary, "doctor", "--sandbox", s.mechanism).CombinedOutput(); err != nil {
		t.Skipf("the mechanism is not to be had here: %v\n%s", err, out)
	}
	s.listen(t)
	shared := s.shared(t)
	for _, r := range rows() {
		t.Run(r.slug(), func(t *testing.T) {
			t.Parallel()
			s.fit(t, r)
			s.prepare(t, r)
			s.try(t, r, shared)
		})
	}
}

// fit skips a row that is not for this run, user or machine.
func (s *site) fit(t *testing.T, r row) {
	t.Helper()
	if r.slow && !asked("all") {
		t.Skip("slow: PERSTACK_BASE_WORKLOADS=all runs it")
	}
	if r.plain && s.who.uid == 0 {
		t.Skip("not for root")
	}
	for _, program := range r.needs {
		if found := lookPath(program); found == "" {
			t.Skip("this machine has no ", program)
		}
	}
}

// lookPath finds a program on the servers' PATH.
func lookPath(program string) string {
	for _, dir := range filepath.SplitList(searchPath()) {
		path := filepath.Join(dir, program)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// listen starts the servers that no session started: what a container engine would
// listen on, and another program of the user's.
func (s *site) listen(t *testing.T) {
	t.Helper()
	for _, at := range []struct{ network, address string }{
		{"tcp", "127.0.0.1:0"}, {"unix", filepath.Join(s.outside(), "engine.sock")},
	} {
		l, err := net.Listen(at.network, at.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		if at.network == "tcp" {
			_, s.port, _ = net.SplitHostPort(l.Addr().String())
		} else if err := os.Chmod(at.address, 0o666); err != nil {
			t.Fatal(err)
		}
		go greet(l)
	}
}

// greet answers every connection like a web server, and says so.
func greet(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = conn.Write([]byte("HTTP/1.0 200 OK\r\nContent-Length: 8\r\n\r\nanswered"))
		}()
	}
}

// try carries the row out and compares.
func (s *site) try(t *testing.T, r row, shared func() server) {
	problem := s.verdict(r, s.carryOut(t, r, shared))
	switch {
	case problem == "":
		s.proveOpen(t, r)
	case r.sentence(s.mechanism) == "" && !s.unconfined(t, r):
		t.Skip("it does not work on this machine without confinement either: ", problem)
	default:
		t.Error(problem)
	}
}

// proveOpen shows that it was the confinement that refused.
func (s *site) proveOpen(t *testing.T, r row) {
	t.Helper()
	if r.open && r.sentence(s.mechanism) != "" && !s.unconfined(t, r) {
		t.Error("it does not work without confinement either")
	}
}

// unconfined reports whether the row works where nothing confines commands.
func (s *site) unconfined(t *testing.T, r row) bool {
	t.Helper()
	twin := newSite(t, s.who, "off")
	twin.port = s.port
	twin.prepare(t, r)
	r.says, r.saysOnly = "", nil
	return twin.verdict(r, twin.carryOut(t, r, twin.shared(t))) == ""
}

// shared starts the server of all rows that want none of their own, when it is asked for.
func (s *site) shared(t *testing.T) func() server {
	return sync.OnceValue(func() server { return s.start(t, s.workspace(), nil) })
}

// carryOut runs the calls of a row and returns their answers.
func (s *site) carryOut(t *testing.T, r row, shared func() server) (answers []answer) {
	t.Helper()
	var srv server
	for i, line := range r.calls {
		cwd := ""
		switch {
		case !r.own():
			srv, cwd = shared(), r.slug()
		case i == 0 || r.sessions:
			srv = s.startFor(t, r)
		}
		a := srv.run(t, line, cwd)
		answers = append(answers, a)
		if a.Code != "" {
			break
		}
	}
	return answers
}

// verdict says what is not as the row has it; "" when all is.
func (s *site) verdict(r row, answers []answer) string {
	last := answers[len(answers)-1]
	want := strings.NewReplacer("OUTSIDE", s.outside(), "ROW", s.rowDir(r), "PORT", s.port).Replace(r.sentence(s.mechanism))
	hints := strings.Split(last.Hint, "\n")
	switch {
	case len(answers) < len(r.calls):
		return fmt.Sprintf("call %d of %d fails: %v", len(answers), len(r.calls), last)
	case last.Code == "timed_out":
		return fmt.Sprintf("it ran into its deadline: %v", last)
	case want == "" && (last.Code != "" || !r.told && strings.Contains(last.Hint, blocked)):
		return fmt.Sprintf("it does not work: %v", last)
	case want == "" && !strings.Contains(last.Output, r.shows):
		return fmt.Sprintf("it does not show %q: %v", r.shows, last)
	case want != "" && !slices.ContainsFunc(hints, func(hint string) bool { return matches(hint, want) }):
		return fmt.Sprintf("nothing says %q: %v", want, last)
	case want != "" && !r.open && !strings.Contains(last.Output+last.Stdout, r.shows):
		return fmt.Sprintf("it does not show %q: %v", r.shows, last)
	}
	return ""
}
