//go:build amd64 || arm64

package confine

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestIsolatorTry(t *testing.T) {
	p := newPlace(t)
	i, err := NewIsolator(Isolation{Policy: p.policy(), Workspace: p.ws})
	must(t, err)
	defer i.Close()
	null, _ := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	c, err := i.Start(Program{Path: "/bin/sh", Argv: []string{"sh", "-c", os.Getenv("TRY")}, Env: os.Environ(), Dir: p.ws, Files: [3]uintptr{null.Fd(), 1, 2}})
	must(t, err)
	t.Log(c.Wait().ExitStatus())
	t.Logf("%+v", i.Status())
	_ = unix.SIGKILL
}
