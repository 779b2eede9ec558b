//go:build amd64 || arm64

package confine

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/namespaces"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/threads"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// BenchmarkTrue runs the ways to execute true in turn, so that what else the
// machine does falls on all of them alike, and reports the median of each.
func BenchmarkTrue(b *testing.B) {
	ws := b.TempDir()
	policy := policy.DefaultPolicy(policy.Inputs{Workspace: ws, Home: os.Getenv("HOME"), Path: os.Getenv("PATH")})
	fresh, err := threads.New(policy, threads.Options{Spare: -1})
	if err != nil {
		b.Skip(err)
	}
	defer fresh.Close()
	spare, _ := threads.New(policy, threads.Options{Spare: 1})
	defer spare.Close()
	isolator, err := namespaces.New(namespaces.Isolation{Policy: policy, Workspace: ws})
	if err != nil {
		b.Skip(err)
	}
	defer isolator.Close()
	ways := []struct {
		name string
		run  func() error
	}{
		{"plain", func() error { return exec.Command("/bin/true").Run() }},
		{"confined", func() error { return runIn(fresh, exec.Command("/bin/true")) }},
		{"spare", func() error { return runIn(spare, exec.Command("/bin/true")) }},
		{"isolated", func() error { return runTrue(isolator, ws) }},
	}
	if bwrap, err := exec.LookPath("bwrap"); err == nil {
		ways = append(ways, struct {
			name string
			run  func() error
		}{"bwrap", func() error {
			return exec.Command(bwrap, "--ro-bind", "/", "/", "--unshare-all", "--die-with-parent", "/bin/true").Run()
		}})
	}
	times := make([][]time.Duration, len(ways))
	for b.Loop() {
		for i, way := range ways {
			time.Sleep(2 * threads.RefillDelay) // a spare is made meanwhile
			start := time.Now()
			if err := way.run(); err != nil {
				b.Fatal(err)
			}
			times[i] = append(times[i], time.Since(start))
		}
	}
	for i, way := range ways {
		slices.Sort(times[i])
		b.ReportMetric(float64(times[i][len(times[i])/2].Microseconds()), fmt.Sprintf("%s-us", way.name))
	}
}

// runIn runs a command confined and waits for it.
func runIn(c *threads.Confiner, cmd *exec.Cmd) error {
	if _, err := c.Start(starting(cmd)); err != nil {
		return err
	}
	return wait(cmd)
}

// starting is what Start takes to run cmd, which wait then collects.
func starting(cmd *exec.Cmd) func() (int, error) {
	return func() (int, error) {
		bounds := proc.Reserved()
		bounds.Expendable = true
		return bounds.Start(func(stopped bool) (int, error) {
			if stopped {
				if cmd.SysProcAttr == nil {
					cmd.SysProcAttr = &syscall.SysProcAttr{}
				}
				cmd.SysProcAttr.Ptrace = true
			}
			if err := cmd.Start(); err != nil {
				return 0, err
			}
			return cmd.Process.Pid, nil
		})
	}
}

// wait is cmd.Wait for a command that was started confined.
func wait(cmd *exec.Cmd) error {
	defer proc.Release(cmd.Process.Pid)
	return cmd.Wait()
}

// runTrue runs true in a cell and waits for it.
func runTrue(i *namespaces.Isolator, dir string) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	c, err := i.Start(namespaces.Program{Path: "/bin/true", Argv: []string{"true"}, Env: os.Environ(), Dir: dir,
		Files: [3]uintptr{null.Fd(), null.Fd(), null.Fd()}})
	if err == nil {
		c.Wait()
	}
	return err
}
