//go:build amd64 || arm64

package confine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() { runtime.LockOSThread() }

// oldMountsVar makes the stage do without mount_setattr.
const oldMountsVar = "CONFINE_TEST_OLD_MOUNTS"

// probeVar makes the test binary be the confined program instead: it names a probe.
const probeVar = "CONFINE_TEST_PROBE"

func TestMain(m *testing.M) {
	if os.Getenv(oldMountsVar) != "" {
		mountSetattr = func(int, string, uint, *unix.MountAttr) error { return unix.ENOSYS }
	}
	Stage()
	if name := os.Getenv(probeVar); name != "" {
		if err := probeTable[name].try(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if whom := os.Getenv(stopperVar); whom != "" {
		beStopper(whom)
	}
	if dir := os.Getenv(netVar); dir != "" {
		beNetwork(dir)
	}
	if dir := os.Getenv(bombVar); dir != "" {
		beBombed(dir)
	}
	if dir := os.Getenv(serverVar); dir != "" {
		beServer(dir)
	}
	os.Exit(m.Run())
}

// serverVar makes the test binary be a server that is going to be killed.
const serverVar = "CONFINE_TEST_SERVER"

// A place is a workspace, and a directory outside it that commands must not reach.
type place struct{ ws, outside string }

func newPlace(t testing.TB) place {
	t.Helper()
	dir, err := os.MkdirTemp("", "c-*") // t.TempDir's names are too long for sockets
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := place{filepath.Join(dir, "ws"), filepath.Join(dir, "outside")}
	for _, d := range []string{p.ws, p.outside} {
		must(t, os.Mkdir(d, 0o755))
	}
	must(t, os.WriteFile(filepath.Join(p.outside, "secret"), []byte("secret"), 0o644))
	return p
}

func (p place) policy() Policy {
	exe, _ := os.Executable()
	tmp := filepath.Join(p.ws, ".tmp")
	_ = os.Mkdir(tmp, 0o755)
	return DefaultPolicy(Inputs{Workspace: p.ws, Home: os.Getenv("HOME"), Path: os.Getenv("PATH"), AllowRead: []string{exe}})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func confiner(t testing.TB, p Policy, without missing) *Confiner {
	t.Helper()
	c, err := newConfiner(p, Options{}, without)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// A result is how a confined command went.
type result struct {
	out    string
	err    error
	domain *Domain
}

// do runs a command confined (c may be nil: unconfined) in the workspace.
func (p place) do(t testing.TB, c *Confiner, env []string, argv ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = p.ws
	tmp := filepath.Join(p.ws, ".tmp")
	cmd.Env = append(os.Environ(), append([]string{"HOME=" + tmp, "TMPDIR=" + tmp}, env...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	var r result
	if c == nil {
		r.err = cmd.Run()
	} else if r.domain, r.err = c.Start(starting(cmd)); r.err == nil {
		r.err = cmd.Wait()
	}
	r.out = out.String()
	return r
}

func (p place) sh(t testing.TB, c *Confiner, script string) result {
	t.Helper()
	return p.do(t, c, nil, "/bin/sh", "-c", script)
}

// wantRefusal fails unless the domain recorded a refusal that contains what.
func (r result) wantRefusal(t *testing.T, what string) {
	t.Helper()
	for _, f := range r.domain.Refusals() {
		if strings.Contains(f.What, what) && f.Count > 0 && f.Command != "" {
			return
		}
	}
	t.Errorf("no refusal %q in %+v", what, r.domain.Refusals())
}

func waitDone(t testing.TB, d *Domain) {
	t.Helper()
	select {
	case <-d.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("the domain still has processes")
	}
}

func ptr[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

func credential(id uint32) *syscall.Credential { return &syscall.Credential{Uid: id, Gid: id} }
