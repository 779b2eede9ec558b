//go:build amd64 || arm64

package confine

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"golang.org/x/sys/unix"
)

// openTerminals tries to open the terminal named on each line of the input in
// every way, and answers with those that worked. "new" makes one of its own,
// tells its number, and gives it up again.
func openTerminals() error {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if lines.Text() == "new" {
			m, n, err := newTerminal()
			if err != nil {
				return err
			}
			s, err := unix.Open(fmt.Sprint("/dev/pts/", n), unix.O_RDWR|unix.O_NOCTTY, 0)
			fmt.Println(n, err)
			unix.Close(s)
			unix.Close(m)
			continue
		}
		var worked []string
		for name, flags := range map[string]int{"rw": unix.O_RDWR, "rw-noctty": unix.O_RDWR | unix.O_NOCTTY, "read": unix.O_RDONLY,
			"read-noctty": unix.O_RDONLY | unix.O_NOCTTY, "write": unix.O_WRONLY, "create": unix.O_RDWR | unix.O_CREAT, "path": unix.O_RDWR | unix.O_NONBLOCK,
			"neither": unix.O_ACCMODE, "neither-noctty": unix.O_ACCMODE | unix.O_NOCTTY} {
			if fd, err := unix.Open(lines.Text(), flags|unix.O_CLOEXEC, 0o600); err == nil {
				worked = append(worked, name)
				unix.Close(fd)
			}
		}
		fmt.Println(strings.Join(worked, " "))
	}
	return nil
}

func newTerminal() (master, number int, err error) {
	m, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, 0, err
	}
	if err := unix.IoctlSetPointerInt(m, unix.TIOCSPTLCK, 0); err != nil {
		return -1, 0, err
	}
	n, err := unix.IoctlGetInt(m, unix.TIOCGPTN)
	return m, n, err
}

// TestOtherTerminals: a command opens no terminal but its session's: neither one
// that is older than the server, nor a newer one, nor one whose number it had.
func TestOtherTerminals(t *testing.T) {
	p := newPlace(t)
	older, olderN, err := newTerminal()
	must(t, err)
	defer unix.Close(older)
	for name, without := range map[string]kernel.Missing{"free": {}, "here": {}, "no duplicates": {GetFD: true}, "landlock 5": {LandlockAbove: 5}} {
		t.Run(name, func(t *testing.T) {
			ask := terminalProbe(t, p, name != "free", without)
			newer, newerN, err := newTerminal()
			must(t, err)
			defer unix.Close(newer)
			own := -1
			if _, err := fmt.Sscanf(ask("new"), "%d <nil>", &own); err != nil {
				t.Fatal("it cannot make a terminal of its own:", err)
			}
			targets := []int{olderN, newerN}
			for range 64 { // until the number that it had is somebody else's
				m, n, err := newTerminal()
				must(t, err)
				defer unix.Close(m)
				if n == own {
					targets = append(targets, n)
					break
				}
			}
			for _, n := range targets {
				for _, path := range []string{fmt.Sprint("/dev/pts/", n), fmt.Sprint("/dev/../dev/pts//", n)} {
					worked := ask(path)
					if name == "free" && worked == "" {
						t.Errorf("%s cannot be opened anyway: nothing is proven", path)
					}
					if name != "free" && worked != "" {
						t.Errorf("it opened %s: %s", path, worked)
					}
				}
			}
		})
	}
}

// terminalProbe starts the program above and returns how to ask it.
func terminalProbe(t *testing.T, p place, caged bool, without kernel.Missing) (ask func(string) string) {
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.Command(exe)
	cmd.Dir = p.ws
	cmd.Env = append(os.Environ(), probeVar+"=terminals")
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	if caged {
		_, err = confiner(t, p.policy(), without).Start(starting(cmd))
	} else {
		err = cmd.Start()
	}
	must(t, err)
	t.Cleanup(func() { in.Close(); _ = wait(cmd) })
	lines := bufio.NewReader(out)
	return func(question string) string {
		_, err := io.WriteString(in, question+"\n")
		must(t, err)
		line, err := lines.ReadString('\n')
		must(t, err)
		return strings.TrimSpace(line)
	}
}

// TestTmux: a program that lives of terminals works.
func TestTmux(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip(err)
	}
	p := newPlace(t)
	script := `unset TMUX; tmux -S t.sock -f /dev/null new-session -d 'echo in tmux > t.out; sleep 100' && for i in $(seq 300); do [ -s t.out ] && break; sleep 0.1; done; cat t.out; tmux -S t.sock kill-server; rm -f t.out t.sock`
	if r := p.sh(t, confiner(t, p.policy(), kernel.Missing{}), script); strings.TrimSpace(r.out) != "in tmux" {
		t.Errorf("%v %s", r.err, r.out)
	}
}
