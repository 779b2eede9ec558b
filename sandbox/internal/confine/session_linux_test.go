//go:build amd64 || arm64

package confine

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/namespaces"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// beside is a place in the workspace for a command whose processes are counted
// apart from the others'.
func (p place) beside(t *testing.T, name string) place {
	t.Helper()
	q := place{filepath.Join(p.ws, name), p.outside}
	must(t, os.MkdirAll(q.ws, 0o755))
	return q
}

// states are those of the processes that run in the place.
func (p place) states() string {
	var all []string
	for _, pid := range p.living() {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])); len(fields) > 0 {
			all = append(all, fields[0])
		}
	}
	return strings.Join(all, "")
}

// storm has the daemons run in the place, and others that fork faster than
// processes can be listed.
func (p place) storm(t *testing.T, i *namespaces.Isolator) *namespaces.Cell {
	t.Helper()
	_ = os.Remove(filepath.Join(p.ws, "up"))
	_, c := p.begin(t, i, nil, "/bin/sh", "-c", daemons+`
echo 'sh storm.sh & exit' > storm.sh
sh storm.sh & sh storm.sh & sh storm.sh &
echo up > up; sleep 1005`)
	p.awaitDaemons(t)
	return c
}

// goesOn waits until all that a kill has stopped have been let go on.
func goesOn(i *namespaces.Isolator) { i.Still.Lock(); defer i.Still.Unlock() }

// TestSessionProcesses: what one command left running is seen and signalled by
// the next, and by no other session.
func TestSessionProcesses(t *testing.T) {
	p := newPlace(t)
	mine, other := p.isolator(t, true), p.isolator(t, true)
	_, c := p.begin(t, mine, nil, "/bin/sh", "-c", "(setsid sleep 1111 &); echo up > up")
	eventually(t, "it did not start", p.isUp)
	c.Wait()
	const see = "for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $f; done 2>/dev/null | grep -c 'sleep 111[1]'"
	if out, _ := p.inSh(t, mine, see); out != "1\n" {
		t.Errorf("the next command sees %q", out)
	}
	if out, _ := p.inSh(t, other, see); out != "0\n" {
		t.Errorf("another session sees %q", out)
	}
	if out, status := p.inSh(t, mine, "grep -l sleep /proc/[0-9]*/comm | cut -d/ -f3 | xargs kill"); status != 0 {
		t.Errorf("it cannot be signalled: %s", out)
	}
	eventually(t, "it lives on", func() bool { return !c.Alive() && len(p.living()) == 0 })
}

// TestKillIsExact: of two commands that fork and detach one is killed, and the
// other goes on: what runs there runs, what was stopped stays stopped.
func TestKillIsExact(t *testing.T) {
	p := newPlace(t)
	a, b := p.beside(t, "a"), p.beside(t, "b")
	i := p.isolator(t, false)
	_, other := b.begin(t, i, nil, "/bin/sh", "-c", `sleep 1001 & kill -STOP $!; i=0; while :; do i=$((i+1)); echo $i > n; done`)
	count := func() int {
		text, _ := os.ReadFile(filepath.Join(b.ws, "n"))
		n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		return n
	}
	eventually(t, "the other did not start", func() bool { return count() > 0 && strings.Contains(b.states(), "T") })
	for range map[bool]int{true: 1, false: 5}[testlevel.Quick()] {
		c := a.storm(t, i)
		must(t, c.Kill())
		<-c.Done()
		if left := a.living(); len(left) > 0 {
			t.Fatalf("%v survived", left)
		}
		before := count()
		eventually(t, "the other command does not go on", func() bool { return count() > before+10 })
		goesOn(i)
		if s := b.states(); strings.Count(s, "T") != 1 || len(s) != 2 {
			t.Fatalf("the other command's processes: %q, one was stopped and one ran", s)
		}
	}
	must(t, other.Kill())
	<-other.Done()
}

// TestKillsAtOnce: many storms end at the same time, with a bystander.
func TestKillsAtOnce(t *testing.T) {
	p := newPlace(t)
	i := p.isolator(t, true)
	by := p.beside(t, "by")
	_, other := by.begin(t, i, nil, "/bin/sleep", "1000")
	var cells []*namespaces.Cell
	for n := range 4 {
		cells = append(cells, p.beside(t, fmt.Sprint(n)).storm(t, i))
	}
	ended := make(chan error)
	for _, c := range cells {
		go func() { ended <- c.Kill() }()
	}
	for range cells {
		must(t, <-ended)
	}
	for n, c := range cells {
		<-c.Done()
		if left := p.beside(t, fmt.Sprint(n)).living(); len(left) > 0 {
			t.Errorf("of %d %v survived", n, left)
		}
	}
	goesOn(i)
	if s := by.states(); s != "S" {
		t.Errorf("the bystander: %q", s)
	}
	must(t, other.Kill())
}

// TestReaperKilled: a command that kills what holds it together ends with it, as
// one does that stops it.
func TestReaperKilled(t *testing.T) {
	p := newPlace(t)
	i := p.isolator(t, false)
	a, b := p.beside(t, "a"), p.beside(t, "b")
	_, other := b.begin(t, i, nil, "/bin/sleep", "1000")
	for _, sig := range []string{"KILL", "STOP"} {
		_ = os.Remove(filepath.Join(a.ws, "up"))
		_, c := a.begin(t, i, nil, "/bin/sh", "-c", daemons+"echo up > up; kill -"+sig+" $PPID; sleep 1005")
		eventually(t, "the daemons did not start", a.isUp)
		if sig == "STOP" {
			must(t, c.Kill())
		}
		<-c.Done()
		if left := a.living(); len(left) > 0 {
			t.Fatalf("%s: %v survived", sig, left)
		}
		if status := c.Wait(); status.Signal() != unix.SIGKILL {
			t.Errorf("%s: ended by %v", sig, status)
		}
		if !other.Alive() || len(b.living()) != 1 {
			t.Errorf("%s: another command ended as well", sig)
		}
	}
	_, c := a.begin(t, i, nil, "/bin/sh", "-c", "kill -9 -1; sleep 1005")
	<-c.Done()
	<-other.Done()
	if out, _ := p.inSh(t, i, "echo on"); out != "on\n" {
		t.Errorf("the session does not go on: %q", out)
	}
}

// TestKeeperKilled: with the keeper, whoever kills it, ends all of the session.
func TestKeeperKilled(t *testing.T) {
	p := newPlace(t)
	i := p.isolator(t, true)
	c := p.storm(t, i)
	must(t, unix.Kill(i.Keeper.PID, unix.SIGKILL))
	<-c.Done()
	if left := p.living(); len(left) > 0 {
		t.Errorf("%v survived", left)
	}
	must(t, c.Kill())
	if c, err := i.Start(namespaces.Program{Path: "/bin/true", Argv: []string{"true"}, Dir: p.ws}); err == nil {
		t.Errorf("a command started: %+v", c)
	}
}

// TestKeeperIsSmall: it has no memory of the server's, a name of its own, and goes
// first, with the commands, when there is no memory left.
func TestKeeperIsSmall(t *testing.T) {
	i := newPlace(t).isolator(t, true)
	size, _ := strconv.Atoi(strings.Fields(proc.StatusField(i.Keeper.PID, "VmRSS") + " 0")[0])
	if size > 2000 {
		t.Errorf("it has %d KB", size)
	}
	if name := proc.Name(i.Keeper.PID); name != "keeper" {
		t.Errorf("it is called %q", name)
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", i.Keeper.PID))
	if len(line) > 0 || err != nil {
		t.Errorf("it shows %q %v", line, err)
	}
	p := newPlace(t)
	i = p.isolator(t, true)
	if out, _ := p.inSh(t, i, "cat /proc/self/oom_score_adj; sh -c 'cat /proc/self/oom_score_adj'"); out != "1000\n1000\n" {
		t.Errorf("commands have %q", out)
	}
	if own, _ := os.ReadFile("/proc/self/oom_score_adj"); string(own) == "1000\n" {
		t.Error("so has the server")
	}
}

// TestNoDescriptors: a server that cannot open a file any more cannot list
// processes, but lets nobody stand still.
func TestNoDescriptors(t *testing.T) {
	p := newPlace(t)
	i := p.isolator(t, true)
	_, c := p.begin(t, i, nil, "/bin/sleep", "1000")
	eventually(t, "it did not start", func() bool { return p.states() == "S" })
	var limit unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	tight := limit
	i.StandStill(func() {
		tight.Cur = 3
		must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &tight))
		if _, err := i.Procs.List(); err == nil {
			t.Error("they could be listed: this proves nothing")
		}
	})
	for range 3 {
		if _, err := i.Procs.List(); err == nil {
			t.Error("they can be listed: this proves nothing")
		}
	}
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	eventually(t, "it stands still", func() bool { return p.states() == "S" })
	goesOn(i)
	must(t, c.Kill())
}

// TestIsolatingServerKilled is TestServerKilled for namespaces.
func TestIsolatingServerKilled(t *testing.T) {
	p := newPlace(t)
	p.isolator(t, true)
	exe, err := os.Executable()
	must(t, err)
	for _, group := range []bool{false, true} {
		server := exec.Command(exe)
		server.Env = append(os.Environ(), serverVar+"="+p.ws, isolatingVar+"=1")
		server.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
		must(t, server.Start())
		eventually(t, "the server did not start", p.isUp)
		victim := server.Process.Pid
		if group {
			victim = -victim
		}
		must(t, unix.Kill(victim, unix.SIGKILL))
		_ = server.Wait()
		eventually(t, "processes survived their server", func() bool { return len(p.living()) == 0 })
		must(t, os.Remove(filepath.Join(p.ws, "up")))
	}
}

// isolatingVar makes beServer use namespaces.
const isolatingVar = "CONFINE_TEST_ISOLATING"

func beIsolatingServer(p place) {
	i, err := namespaces.New(namespaces.Isolation{Policy: p.policy(), Workspace: p.ws})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	null, _ := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	c, err := i.Start(namespaces.Program{Path: "/bin/sh", Argv: []string{"sh", "-c", daemons + "echo up > up; sleep 1005"}, Env: os.Environ(), Dir: p.ws,
		Files: [3]uintptr{null.Fd(), null.Fd(), null.Fd()}})
	if err == nil {
		c.Wait()
	}
	os.Exit(1)
}

// TestArguments: the longest that the kernel takes pass, longer ones are refused
// as it would.
func TestArguments(t *testing.T) {
	p := newPlace(t)
	i := p.isolator(t, true)
	long := strings.Repeat("x", 100_000)
	var env []string
	for n := range 10 {
		env = append(env, fmt.Sprintf("V%d=%s", n, long))
	}
	if out, status := p.in(t, i, env, "/bin/sh", "-c", "echo ${#V9}"); out != "100000\n" {
		t.Errorf("%q %v", out, status)
	}
	for n := range 200 {
		env = append(env, fmt.Sprintf("W%d=%s", n, long))
	}
	_, err := i.Start(namespaces.Program{Path: "/bin/true", Argv: []string{"true"}, Env: env, Dir: p.ws})
	if err != unix.E2BIG {
		t.Errorf("too much: %v", err)
	}
	if out, _ := p.inSh(t, i, "echo on"); out != "on\n" {
		t.Errorf("then: %q", out)
	}
	out, c := p.begin(t, i, nil, "/bin/sh", "-c", "sleep 0.1; echo late")
	if out2, _ := p.inSh(t, i, "echo soon"); out2 != "soon\n" {
		t.Error(out2)
	}
	if text, _ := io.ReadAll(out); string(text) != "late\n" {
		t.Errorf("%q", text)
	}
	c.Wait()
}
