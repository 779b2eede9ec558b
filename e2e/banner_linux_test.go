package e2e

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestBanner: a person who starts the server at a terminal is told what it is and where help is.
func TestBanner(t *testing.T) {
	terminal, other, err := openTerminal()
	if err != nil {
		t.Skip("this needs a pseudo terminal: ", err)
	}
	defer terminal.Close()
	var stderr strings.Builder
	cmd := exec.Command(binary)
	cmd.Dir, cmd.Stdin, cmd.Stderr = workspace(t), other, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	other.Close()
	guard := time.AfterFunc(hangGuard, func() { cmd.Process.Kill() })
	defer guard.Stop()
	if _, err := terminal.Write([]byte{4}); err != nil { // Ctrl-D
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	for _, want := range []string{"for an MCP client to start", cmd.Dir, "perstack-base --help", "Ctrl-D"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("the banner lacks %q: %s", want, stderr.String())
		}
	}
}

// openTerminal opens both ends of a new pseudo terminal.
func openTerminal() (terminal, other *os.File, err error) {
	if terminal, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	fd := int(terminal.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		other, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		terminal.Close()
	}
	return terminal, other, err
}
