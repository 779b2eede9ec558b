package files

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox"
	"golang.org/x/sys/unix"
)

func TestSpecialFiles(t *testing.T) {
	for _, long := range []bool{false, true} {
		longWay = long
		special(t)
	}
	longWay = false
}

func special(t *testing.T) {
	w := newWorld(t)
	must(t, unix.Mkfifo(w.path("fifo"), 0o644))
	w.link("tofifo", "fifo")
	// A bind path is short; the socket is made by a relative name.
	t.Chdir(w.ws)
	sock, err := net.Listen("unix", "sock")
	must(t, err)
	defer sock.Close()
	objects := []string{"fifo", "tofifo", "sock"}
	if unix.Mknod(w.path("device"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))) == nil {
		objects = append(objects, "device")
	}
	before := w.snapshot()
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		for _, name := range objects {
			for op, call := range w.calls() {
				want := sandbox.ErrNotRegular
				if op == "Stat" {
					want = nil // looking is allowed
				}
				if op == "OpenDir" || op == "ReadDir" || op == "Resolve" {
					want = sandbox.ErrNotDirectory
				}
				if err := call(name); !errors.Is(err, want) {
					t.Errorf("%s(%s): %v, want %v", op, name, err, want)
				}
			}
		}
	}()
	select {
	case <-finished:
	case <-time.After(10 * time.Second):
		t.Fatal("a call waits on a special file")
	}
	if after := w.snapshot(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// Reading a FIFO must not even wake the process that waits to write to it.
func TestFIFOWriterIsNotWoken(t *testing.T) {
	w := newWorld(t)
	must(t, unix.Mkfifo(w.path("fifo"), 0o644))
	woken := make(chan struct{})
	go func() {
		file, err := os.OpenFile(w.path("fifo"), os.O_WRONLY, 0)
		if err == nil {
			file.Close()
		}
		close(woken)
	}()
	time.Sleep(50 * time.Millisecond) // let it wait
	if _, err := w.fs.Open("fifo"); !errors.Is(err, sandbox.ErrNotRegular) {
		t.Fatal(err)
	}
	select {
	case <-woken:
		t.Error("the writer was woken")
	case <-time.After(50 * time.Millisecond):
	}
	// The control: opening does wake it.
	reader, err := os.OpenFile(w.path("fifo"), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	must(t, err)
	defer reader.Close()
	<-woken
}

// mount mounts for the test or skips it, visibly.
func mount(t *testing.T, source, target, kind string, flags uintptr, data string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		t.Skipf("mounting is refused here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(target, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

func TestFullDisk(t *testing.T) {
	w := newWorld(t)
	mount(t, "tmpfs", w.ws, "tmpfs", 0, "size=256k")
	f, err := Open(w.ws, sandbox.Limits{})
	must(t, err)
	defer f.Close()
	w.file("f", strings.Repeat("o", 100<<10))
	w.file("b", "B")
	before := w.snapshot()
	big := bytes.Repeat([]byte("n"), 200<<10)
	if os.WriteFile(w.path("control"), big, 0o644) == nil {
		t.Fatal("the disk is not small enough")
	}
	must(t, os.Remove(w.path("control")))
	for op, call := range map[string]func() error{
		"write":     func() error { _, err := f.Write("f", big); return err },
		"write new": func() error { _, err := f.Write("new/dir/f", big); return err },
		"edit":      func() error { _, err := f.Edit("f", func([]byte) ([]byte, error) { return big, nil }); return err },
		"transact": func() error {
			return f.Transact(nil, func(tx *Tx) error {
				return errors.Join(tx.Write("b", []byte("new"), nil), tx.Remove("b"), tx.Write("x/y", []byte("n"), nil), tx.Write("f", big, nil))
			})
		},
	} {
		err := call()
		if !errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), w.ws) {
			t.Errorf("%s: %v", op, err)
		}
		if after := w.snapshot(); after != before {
			t.Errorf("%s\nbefore:\n%.300s\nafter:\n%.300s", op, before, after)
		}
	}
	w.noTemps()
}

// A single file that is bind-mounted cannot be replaced, only written in place.
func TestMountedFile(t *testing.T) {
	w := newWorld(t)
	w.file("m", "old and long")
	w.file("other", "O")
	source := filepath.Join(w.out, "..", "source")
	must(t, os.WriteFile(source, []byte("mounted, old"), 0o644))
	mount(t, source, w.path("m"), "", unix.MS_BIND, "")
	if err := os.Rename(w.path("other"), w.path("m")); !errors.Is(err, syscall.EBUSY) {
		t.Fatalf("the control: %v", err)
	}
	_, err := w.fs.Write("m", []byte("new"))
	must(t, err)
	w.want("m", "new")
	// In a transaction that fails, the mounted file comes back too.
	err = w.fs.Transact(nil, func(tx *Tx) error {
		must(t, tx.Write("m", []byte("transacted"), nil))
		must(t, tx.Remove("other"))
		return nil
	})
	must(t, err)
	w.want("m", "transacted")
	w.file("other", "O")
	err = w.fs.Transact(nil, func(tx *Tx) error {
		must(t, tx.Write("other", []byte("o"), nil))
		return tx.Remove("m") // EBUSY, after other was replaced
	})
	if !errors.Is(err, syscall.EBUSY) {
		t.Errorf("removing a mounted file: %v", err)
	}
	w.want("m", "transacted")
	w.want("other", "O")
	w.clean()
}

func TestWorkspaceUnderAnotherMount(t *testing.T) {
	w := newWorld(t)
	w.file("d/f", "F")
	alias := filepath.Join(w.out, "..", "alias")
	must(t, os.Mkdir(alias, 0o755))
	mount(t, w.ws, alias, "", unix.MS_BIND, "")
	if p, err := w.fs.Resolve(alias + "/d/f"); err != nil || p.Rel != "d/f" {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := w.fs.Resolve(alias + "/perstack"); !errors.Is(err, sandbox.ErrReserved) {
		t.Errorf("perstack: %v", err)
	}
}

func TestPermissions(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root is refused nothing")
	}
	w := newWorld(t)
	w.file("unreadable", "U")
	must(t, os.Chmod(w.path("unreadable"), 0o200))
	w.file("closed/f", "C")
	w.file("fixed/f", "F")
	must(t, os.Chmod(w.path("closed"), 0))
	must(t, os.Chmod(w.path("fixed"), 0o555))
	defer os.Chmod(w.path("closed"), 0o755)
	defer os.Chmod(w.path("fixed"), 0o755)
	for op, c := range map[string]struct{ err, want error }{
		"read unreadable": {w.calls()["Open"]("unreadable"), sandbox.ErrNotReadable},
		"edit unreadable": {w.calls()["Edit"]("unreadable"), sandbox.ErrNotReadable},
		"read closed":     {w.calls()["Open"]("closed/f"), sandbox.ErrNotReadable},
		"list closed":     {w.calls()["ReadDir"]("closed"), sandbox.ErrNotReadable},
		"write closed":    {w.calls()["Write"]("closed/f"), sandbox.ErrNotWritable},
		"write fixed":     {w.calls()["Write"]("fixed/f"), sandbox.ErrNotWritable},
		"create fixed":    {w.calls()["Write"]("fixed/new/f"), sandbox.ErrNotWritable},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", op, c.err, c.want)
		}
	}
	// What cannot be read can still be removed, and comes back if that fails.
	failing := w.fs.Transact(nil, func(tx *Tx) error {
		return errors.Join(tx.Remove("unreadable"), tx.Write("fixed/f", []byte("x"), nil))
	})
	if !errors.Is(failing, sandbox.ErrNotWritable) {
		t.Error(failing)
	}
	w.mode("unreadable", 0o200)
	must(t, w.fs.Transact(nil, func(tx *Tx) error { return tx.Remove("unreadable") }))
}

func TestOwnerIsKept(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("giving files away needs root")
	}
	w := newWorld(t)
	w.file("f", "old")
	must(t, os.Chown(w.path("f"), 1234, 5678))
	must(t, os.Chmod(w.path("f"), 0o4750)) // the set-uid bit is not kept
	_, err := w.fs.Write("f", []byte("new"))
	must(t, err)
	info, err := os.Stat(w.path("f"))
	must(t, err)
	stat := info.Sys().(*syscall.Stat_t)
	if stat.Uid != 1234 || stat.Gid != 5678 || info.Mode() != 0o750 {
		t.Errorf("owner %d:%d, mode %v", stat.Uid, stat.Gid, info.Mode())
	}
}
