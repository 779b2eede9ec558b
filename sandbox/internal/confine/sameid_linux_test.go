//go:build amd64 || arm64

package confine

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/threads"
	"golang.org/x/sys/unix"
)

// sameIDVar makes the test binary be a server in a process namespace of its own,
// where it can give a process the id that another one had.
const sameIDVar = "CONFINE_TEST_SAME_ID"

// inProcessSpace runs the test binary as such a server.
func inProcessSpace(env ...string) (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	server := exec.Command(exe)
	server.Env = append(os.Environ(), env...)
	server.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
	out, err := server.CombinedOutput()
	return string(out), err
}

// ownProc shows the server its own processes.
func ownProc() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	return unix.Mount("proc", "/proc", "proc", 0, "")
}

// echoWithID starts a cat under an id that is free. It says a line back as long as it lives.
func echoWithID(pid int) (says func() bool, err error) {
	for range 100 { // a new thread of ours may take the id
		cat := exec.Command("cat")
		in, _ := cat.StdinPipe()
		out, _ := cat.StdoutPipe()
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0); err != nil {
			return nil, err
		}
		if err := cat.Start(); err != nil {
			return nil, err
		}
		if cat.Process.Pid == pid {
			return func() bool {
				_, _ = io.WriteString(in, "x")
				_ = in.Close()
				said, _ := io.ReadAll(out)
				return string(said) == "x"
			}, nil
		}
		_ = cat.Process.Kill()
		_ = cat.Wait()
	}
	return nil, fmt.Errorf("no process got the id %d", pid)
}

// beSameID kills a command that left a daemon, after its own id has become that
// of a process outside.
func beSameID(dir string) {
	err := func() error {
		if err := ownProc(); err != nil {
			return fmt.Errorf("no ids: %w", err)
		}
		p := place{ws: dir}
		c, err := threads.NewWithout(p.policy(), threads.Options{}, kernel.Missing{LandlockAbove: 5})
		if err != nil {
			return fmt.Errorf("no ids: %w", err)
		}
		cmd := exec.Command("/bin/sh", "-c", "setsid sleep 1000 & exit 0")
		cmd.Dir = dir
		d, err := c.Start(starting(cmd))
		if err != nil {
			return err
		}
		if err := wait(cmd); err != nil {
			return err
		}
		says, err := echoWithID(cmd.Process.Pid)
		if err != nil {
			return fmt.Errorf("no ids: %w", err)
		}
		if err := d.Kill(); err != nil {
			return err
		}
		if !says() {
			return fmt.Errorf("process %d is not the command's any more, and was killed", cmd.Process.Pid)
		}
		<-d.Done()
		return nil
	}()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// TestSameID: who got the id that a command's process had is not taken for it.
func TestSameID(t *testing.T) {
	p := newPlace(t)
	out, err := inProcessSpace(sameIDVar + "=" + p.ws)
	if strings.Contains(out, "no ids:") || err != nil && os.Getuid() != 0 {
		t.Skipf("no process namespace of our own here: %v %s", err, out)
	}
	if err != nil {
		t.Error(err, out)
	}
}
