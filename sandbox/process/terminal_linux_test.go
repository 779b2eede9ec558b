package process

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/internal/pty"
)

// TestRunningTerminals: a command has its terminal as any program has, those of its
// session, and nobody else's; it types into none.
func TestRunningTerminals(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3 is installed")
	}
	s, c := newShell(t, Config{Limits: quick})
	own := begin(t, s, "tty; read x; echo =$x=", screenSize)
	shows(t, own, "\n")
	name := fmt.Sprintf("/dev/pts/%d", own.process.(localProcess).number)
	if got := strings.TrimSpace(shown(own)); got != name {
		t.Errorf("its terminal is %s, and it sees %s", name, got)
	}
	const script = `python3 -c 'import fcntl, os, sys, termios
def attempt(what, f):
    try: f(); print(what, "yes")
    except OSError: print(what, "no")
attempt("controls", lambda: os.close(os.open("/dev/tty", os.O_RDWR)))
attempt("reopens", lambda: os.close(os.open(os.ttyname(0), os.O_RDWR | os.O_NOCTTY)))
attempt("pushes", lambda: fcntl.ioctl(0, termios.TIOCSTI, b"x"))
attempt("opens", lambda: os.write(os.open("%s", os.O_RDWR | os.O_NOCTTY), b"intruder\n"))
print("done")'`
	want := []string{"controls yes", "reopens yes"}
	if s.session.confined() {
		want = append(want, "pushes no")
	}
	for _, shell := range []*Shell{s, newLimited(t, c)} { // to the other one the name is its own terminal's, or nobody's
		r := begin(t, shell, fmt.Sprintf(script, name), screenSize)
		shows(t, r, "done")
		for _, w := range want {
			if !strings.Contains(shown(r), w) {
				t.Errorf("not %q: %s", w, shown(r))
			}
		}
		exits(t, r)
	}
	typed(t, own, "end\n", false)
	exits(t, own)
	if n := strings.Count(shown(own), "intruder"); s.session.confined() && n != 1 {
		t.Errorf("%d have written on it: %q", n, shown(own))
	}
}

// TestRunningWithoutTerminal: a command that has none cannot get that of a server
// which was started on one.
func TestRunningWithoutTerminal(t *testing.T) {
	pair, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	defer pair.Close()
	on := func(c *exec.Cmd) *exec.Cmd {
		c.Stdin, c.SysProcAttr = pair.Slave, &syscall.SysProcAttr{Setsid: true, Setctty: true}
		return c
	}
	const script = "(: </dev/tty) 2>/dev/null && echo reached || echo none"
	if out, err := on(exec.Command("sh", "-c", script)).Output(); string(out) != "reached\n" {
		t.Fatalf("the server itself would not reach it: %q, %v", out, err)
	}
	server := on(exec.Command(os.Args[0]))
	server.Env = append(os.Environ(), "SANDBOX_TEST_SERVER="+script)
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Wait()
	defer server.Process.Kill()
	if line, err := bufio.NewReader(out).ReadString('|'); line != "none\n|" {
		t.Errorf("%q, %v", line, err)
	}
}
