//go:build amd64 || arm64

package confine

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// isolator is one for the place, with Landlock on top or without, or the test is skipped.
func (p place) isolator(t testing.TB, landlock bool) *Isolator {
	t.Helper()
	kernel := features{}
	if landlock {
		kernel.Landlock = landlockABI()
	}
	i, err := newIsolator(Isolation{Policy: p.policy(), Workspace: p.ws}, kernel)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { must(t, i.Close()) })
	return i
}

// in runs a program in a cell to its end and returns what it wrote.
func (p place) in(t testing.TB, i *Isolator, env []string, argv ...string) (string, syscall.WaitStatus) {
	t.Helper()
	out, c := p.begin(t, i, env, argv...)
	text, _ := io.ReadAll(out)
	status := c.Wait()
	must(t, c.Kill())
	<-c.Done()
	return string(text), status
}

func (p place) begin(t testing.TB, i *Isolator, env []string, argv ...string) (*os.File, *Cell) {
	t.Helper()
	out, write, err := os.Pipe()
	must(t, err)
	t.Cleanup(func() { out.Close() })
	defer write.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	must(t, err)
	defer null.Close()
	tmp := filepath.Join(p.ws, ".tmp")
	c, err := i.Start(Program{Path: argv[0], Argv: argv, Dir: p.ws,
		Env:   append(os.Environ(), append([]string{"HOME=" + tmp, "TMPDIR=" + tmp}, env...)...),
		Files: [3]uintptr{null.Fd(), write.Fd(), write.Fd()}})
	must(t, err)
	return out, c
}

func (p place) inSh(t testing.TB, i *Isolator, script string) (string, syscall.WaitStatus) {
	t.Helper()
	return p.in(t, i, nil, "/bin/sh", "-c", script)
}

// harmless are probes that get what they ask for in a cell, where it leads
// nowhere: a network and objects of its own.
var harmless = map[string]bool{}

// TestEscapeFromCell is TestEscape for namespaces, with Landlock on top and without.
func TestEscapeFromCell(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	for _, name := range probeNames() {
		t.Run(name, func(t *testing.T) {
			if probeTable[name].root && os.Getuid() != 0 {
				t.Skip("only root could do this anyway")
			}
			free := newPlace(t)
			if r := free.do(t, nil, append(scene(t, free), probeVar+"="+name), exe); r.err != nil {
				t.Skipf("unconfined it fails too, so it proves nothing here: %s", r.out)
			}
			for machine, landlock := range map[string]bool{"landlock": true, "no landlock": false} {
				t.Run(machine, func(t *testing.T) {
					p := newPlace(t)
					out, status := p.in(t, p.isolator(t, landlock), append(scene(t, p), probeVar+"="+name), exe)
					if got := status.ExitStatus() == 0; got != harmless[name] {
						t.Errorf("got out: %v", got)
					}
					if !status.Exited() || strings.Contains(out, "panic") {
						t.Errorf("it did not run: %v %s", status, out)
					}
				})
			}
		})
	}
}

var _ = unix.SIGKILL
var _ = exec.Command
