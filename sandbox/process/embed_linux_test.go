package process

import (
	"context"
	"os/exec"
	"sync"
	"syscall"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/internal/filetest"
)

// TestEmbedderKeepsItsChildren: a program that runs commands here and starts
// children of its own, in groups of their own, gets the status of every one, and
// none of them is ended with a session. So does every command get its own.
func TestEmbedderKeepsItsChildren(t *testing.T) {
	for _, mode := range []Mode{Off, Auto} {
		t.Run(string(mode), func(t *testing.T) {
			s, c := newShell(t, Config{Sandbox: mode, Limits: quick})
			run(t, s, sh("(setsid true &)"))
			bystander := exec.Command("sleep", "1000")
			bystander.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			filetest.Must(t, bystander.Start())
			var all sync.WaitGroup
			slots := make(chan bool, 16)
			for i := range 300 {
				slots <- true
				all.Go(func() {
					res, err := s.Run(context.Background(), sh("(setsid true &); exit 3"))
					if err != nil || res.ExitCode != 3 {
						t.Errorf("command %d: %+v, %v", i, res, err)
					}
				})
				all.Go(func() {
					defer func() { <-slots }()
					own := exec.Command("sh", "-c", "exit 5")
					own.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
					if err := own.Run(); own.ProcessState == nil || own.ProcessState.ExitCode() != 5 {
						t.Errorf("child %d: %v", i, err)
					}
				})
			}
			all.Wait()
			filetest.Must(t, c.Close()) // the last session ends, and what it left
			if err := bystander.Process.Signal(syscall.Signal(0)); err != nil {
				t.Errorf("a child that is none of the session's was ended with it: %v", err)
			}
			_ = bystander.Process.Kill()
			_ = bystander.Wait()
		})
	}
}
