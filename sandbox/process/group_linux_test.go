package process

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestForeignGroups: a command that joined the process group of another program
// could change the priority of all that is in it. The server's own is one.
func TestForeignGroups(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	other := exec.Command("sleep", "1000")
	other.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	attack := fmt.Sprintf(`import os
try: os.setpgid(0, %d)
except OSError as e: print("kept out:", e)
else: os.setpriority(os.PRIO_PGRP, 0, %%d); print("joined")`, other.Process.Pid)
	nice := func() int {
		raw, err := unix.Getpriority(unix.PRIO_PROCESS, other.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		return 20 - raw
	}
	if out, err := exec.Command("python3", "-c", fmt.Sprintf(attack, 3)).CombinedOutput(); err != nil || nice() != 3 {
		t.Fatalf("from where it may, it does no harm either, so it proves nothing: %v %s", err, out)
	}
	try := func(t *testing.T, shell func(*testing.T, Config) *Shell) {
		res := run(t, shell(t, Config{}), Command{Name: "python3", Args: []string{"-c", fmt.Sprintf(attack, 19)}, Stdout: true, Stderr: true})
		if out := string(res.Stdout.Head); !strings.Contains(out, "kept out") || nice() != 3 {
			t.Errorf("%s %s, nice %d", out, res.Stderr.Head, nice())
		}
	}
	inEachTier(t, try)
	t.Run(string(Off), func(t *testing.T) {
		try(t, func(t *testing.T, c Config) *Shell {
			c.Sandbox = Off
			s, _ := newShell(t, c)
			return s
		})
	})
}
