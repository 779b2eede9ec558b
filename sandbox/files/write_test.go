package files

import (
	"bytes"
	"errors"
	"fmt"
	"github.com/perstack-ai/perstack-base/sandbox"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

func TestWrite(t *testing.T) {
	w := newWorld(t)
	w.file("old", "old")
	must(t, os.Chmod(w.path("old"), 0o751))
	w.file("d/target", "old")
	w.link("rel", "d/target")
	w.link("abs", w.path("d/target"))
	w.link("dangling", "new/by/link")
	w.link("danglingout", w.out+"/made")
	w.link("leak", w.out)
	w.link("loop", "loop")
	w.file("readonly", "r")
	must(t, os.Chmod(w.path("readonly"), 0o444))
	w.file("secret/own", "s")
	must(t, os.Chmod(w.path("secret/own"), 0o600))
	for _, c := range []struct {
		name, at string
		err      error
	}{
		{"fresh", "fresh", nil},
		{"old", "old", nil},
		{"a/b/c/d", "a/b/c/d", nil},
		{w.path("byabs"), "byabs", nil},
		{"rel", "d/target", nil},
		{"abs", "d/target", nil},
		{"dangling", "new/by/link", nil},
		{"secret/own", "secret/own", nil},
		{"danglingout", "", sandbox.ErrEscapes},
		{"leak/made", "", sandbox.ErrEscapes},
		{"../made", "", sandbox.ErrEscapes},
		{"loop", "", fs.ErrNotExist},
		{"readonly", "", sandbox.ErrNotWritable},
		{"d", "", sandbox.ErrIsDirectory},
		{".", "", sandbox.ErrIsDirectory},
		{"perstack/x", "", sandbox.ErrReserved},
		{"Perstack", "", sandbox.ErrReserved},
		{"old/below", "", sandbox.ErrParentIsFile},
		{"old/below/deeper", "", sandbox.ErrParentIsFile},
		{"n/" + strings.Repeat("x", 300), "", sandbox.ErrBadPath},
	} {
		content := "new " + c.name[:1]
		p, err := w.fs.Write(c.name, []byte(content))
		if !errors.Is(err, c.err) {
			t.Errorf("Write(%.40s): %v, want %v", c.name, err, c.err)
		}
		if c.err != nil {
			continue
		}
		w.want(c.at, content)
		if p.Abs != w.path(c.at) || !p.Exists {
			t.Errorf("Write(%s) says %+v", c.name, p)
		}
	}
	w.clean()
	w.mode("old", 0o751)
	w.mode("secret/own", 0o600)
	for _, link := range []string{"rel", "abs", "dangling", "danglingout"} {
		if info, err := os.Lstat(w.path(link)); err != nil || info.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("%s is no link any more", link)
		}
	}
	if _, err := os.Lstat(w.path("n")); err == nil {
		t.Error("the parent of a failed write was left behind")
	}
}

func (w *world) mode(rel string, want fs.FileMode) {
	w.Helper()
	info, err := os.Stat(w.path(rel))
	if err != nil || info.Mode().Perm() != want {
		w.Errorf("%s: mode %v, %v; want %v", rel, info.Mode(), err, want)
	}
}

func TestParentIsFileNamesIt(t *testing.T) {
	w := newWorld(t)
	w.file("d/file", "")
	for name, parent := range map[string]string{
		"d/file/x/y": "d/file", w.path("d/file/x"): w.path("d/file"), "d/../d/file/x": "d/file",
	} {
		_, err := w.fs.Write(name, nil)
		var e *sandbox.PathError
		if !errors.As(err, &e) || !errors.Is(err, sandbox.ErrParentIsFile) || e.Parent != parent {
			t.Errorf("Write(%s): %#v, want parent %s", name, err, parent)
		}
	}
}

func TestHardLinksKeepTheOld(t *testing.T) {
	w := newWorld(t)
	w.file("a", "old")
	must(t, os.Link(w.path("a"), w.path("b")))
	_, err := w.fs.Write("a", []byte("new"))
	must(t, err)
	w.want("b", "old")
}

func TestReaderSeesOldOrNew(t *testing.T) {
	w := newWorld(t)
	a, b := bytes.Repeat([]byte("a"), 200_000), bytes.Repeat([]byte("b"), 100_000)
	_, err := w.fs.Write("f", a)
	must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 200 {
			data := a
			if i%2 == 0 {
				data = b
			}
			if _, err := w.fs.Write("f", data); err != nil {
				t.Error(err)
			}
		}
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		got, err := w.fs.ReadFile("f", 1<<20)
		if err != nil || !bytes.Equal(got, a) && !bytes.Equal(got, b) {
			t.Fatalf("a reader saw %d bytes, %v", len(got), err)
		}
	}
	w.clean()
}

func TestEdit(t *testing.T) {
	w := newWorld(t)
	w.file("f", "one two")
	w.link("l", w.path("f"))
	swap := func(old []byte) ([]byte, error) { return bytes.ReplaceAll(old, []byte("one"), []byte("1")), nil }
	_, err := w.fs.Edit("l", swap)
	must(t, err)
	w.want("f", "1 two")

	before, _ := os.Stat(w.path("f"))
	_, err = w.fs.Edit("f", swap)
	must(t, err)
	if after, _ := os.Stat(w.path("f")); !os.SameFile(before, after) || before.ModTime() != after.ModTime() {
		t.Error("an edit that changes nothing wrote the file")
	}

	own := errors.New("own")
	if _, err = w.fs.Edit("f", func([]byte) ([]byte, error) { return []byte("x"), own }); err != own {
		t.Errorf("the error of change came back as %v", err)
	}
	w.want("f", "1 two")
	for name, want := range map[string]error{"none": fs.ErrNotExist, ".": sandbox.ErrIsDirectory, "f/x": fs.ErrNotExist, "../x": sandbox.ErrEscapes} {
		if _, err := w.fs.Edit(name, swap); !errors.Is(err, want) {
			t.Errorf("Edit(%s): %v, want %v", name, err, want)
		}
	}
	if _, err := os.Lstat(w.path("none")); err == nil {
		t.Error("editing a missing file created it")
	}
	w.clean()
}

func TestEditTooLarge(t *testing.T) {
	w := newWorld(t)
	f, err := Open(w.ws, sandbox.Limits{EditBytes: 10})
	must(t, err)
	defer f.Close()
	for size, ok := range map[int]bool{10: true, 11: false} {
		w.file("f", strings.Repeat("x", size))
		called := false
		_, err := f.Edit("f", func([]byte) ([]byte, error) { called = true; return nil, nil })
		var large *sandbox.TooLargeError
		if tooLarge := errors.As(err, &large); tooLarge == ok || called != ok {
			t.Errorf("%d bytes: %v, called %v", size, err, called)
		} else if tooLarge && (large.Size != 11 || large.Limit != 10 || large.Path != "f") {
			t.Errorf("%+v", large)
		}
	}
}

func TestParallelEditsLoseNothing(t *testing.T) {
	w := newWorld(t)
	w.file("d/f", "")
	w.link("l", "d/f")
	names := []string{"d/f", "l", w.path("d/f"), "x/../d/f"}
	const n = 200
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			_, err := w.fs.Edit(names[i%len(names)], func(old []byte) ([]byte, error) {
				return fmt.Appendf(old, "%d\n", i), nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	got, err := w.read("d/f")
	must(t, err)
	seen := map[string]bool{}
	for line := range strings.FieldsSeq(got) {
		seen[line] = true
	}
	for i := range n {
		if !seen[strconv.Itoa(i)] {
			t.Errorf("edit %d is lost", i)
		}
	}
	if len(w.fs.locks.held) != 0 {
		t.Errorf("locks left: %v", w.fs.locks.held)
	}
	w.clean()
}

func TestParallelNewFilesShareParents(t *testing.T) {
	w := newWorld(t)
	w.file("blocked", "")
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			// A write that fails takes back the parents it made; the others keep theirs.
			name := fmt.Sprintf("p%d/q/f%d", i%4, i)
			if i%3 == 0 {
				name = fmt.Sprintf("p%d/q/%s", i%4, strings.Repeat("x", 300))
			}
			if _, err := w.fs.Write(name, []byte("x")); (err != nil) != (i%3 == 0) {
				t.Errorf("%.20s: %v", name, err)
			}
		})
	}
	all.Wait()
	w.clean()
}

func TestDurable(t *testing.T) {
	w := newWorld(t)
	w.fs.Durable = true
	_, err := w.fs.Write("d/f", []byte("x"))
	must(t, err)
	w.want("d/f", "x")
	w.clean()
}

func TestLocksAreHandedOnInOrder(t *testing.T) {
	var l locks
	l.lock("k")
	var got []int
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() { l.lock("k"); got = append(got, i); l.unlock("k") })
		for waiting := 0; waiting <= i; {
			l.mu.Lock()
			waiting = len(l.held["k"])
			l.mu.Unlock()
		}
	}
	if l.try("k") {
		t.Error("try took a held lock")
	}
	l.unlock("k")
	all.Wait()
	for i, v := range got {
		if i != v {
			t.Fatalf("order %v", got)
		}
	}
	if !l.try("k") || len(l.held) != 1 {
		t.Error("the lock is not free in the end")
	}
}

func TestStaleRoot(t *testing.T) {
	w := newWorld(t)
	w.file("f", "old")
	remake := func() {
		must(t, os.RemoveAll(w.ws))
		must(t, os.Mkdir(w.ws, 0o755))
	}
	remake()
	w.file("f", "new")
	if got, err := w.read("f"); got != "new" || err != nil {
		t.Errorf("read: %q, %v", got, err)
	}
	remake()
	if _, err := w.fs.Write("d/f", []byte("written")); err != nil {
		t.Errorf("write: %v", err)
	}
	w.want("d/f", "written")
	remake()
	w.file("g", "")
	if p, err := w.fs.Resolve("g"); err != nil || !p.Exists {
		t.Errorf("resolve: %+v, %v", p, err)
	}
	remake()
	err := w.fs.Transact(nil, func(tx *Tx) error { return tx.Write("t", []byte("t"), nil) })
	if err != nil {
		t.Errorf("transact: %v", err)
	}
	w.want("t", "t")
	must(t, os.RemoveAll(w.ws))
	if _, err := w.fs.Open("f"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a workspace: %v", err)
	}
	must(t, os.Symlink(w.out, w.ws))
	if got, err := w.read("canary"); err == nil {
		t.Errorf("a link in place of the workspace was followed: %q", got)
	}
}

func TestClosed(t *testing.T) {
	w := newWorld(t)
	must(t, w.fs.Close())
	must(t, w.fs.Close())
	for op, call := range w.calls() {
		if err := call("x"); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%s after Close: %v", op, err)
		}
	}
	if near := w.fs.Near("x"); near != nil {
		t.Errorf("Near after Close: %v", near)
	}
}

func TestOpenRefusesWhatIsNoDirectory(t *testing.T) {
	w := newWorld(t)
	w.file("f", "")
	for _, dir := range []string{w.path("f"), w.path("none")} {
		if f, err := Open(dir, sandbox.Limits{}); err == nil {
			f.Close()
			t.Errorf("Open(%s) succeeded", filepath.Base(dir))
		}
	}
}

// TestReplaceShowsWhatWasThere: the content before, or why there is none; the file is
// written whatever that is.
func TestReplaceShowsWhatWasThere(t *testing.T) {
	f, err := Open(t.TempDir(), sandbox.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, c := range []struct {
		data, before string
		err          error
	}{{"0123456789", "", fs.ErrNotExist}, {"ab", "0123456789", nil}, {"0123456789a", "ab", nil}, {"end", "", new(sandbox.TooLargeError)}} {
		var before []byte
		var why error
		if _, err := f.Replace("sub/f", []byte(c.data), 10, func(old []byte, err error) { before, why = old, err }); err != nil {
			t.Fatal(err)
		}
		var large *sandbox.TooLargeError
		if string(before) != c.before || (c.err == nil) != (why == nil) || c.err == fs.ErrNotExist && !errors.Is(why, fs.ErrNotExist) ||
			c.err != nil && c.err != fs.ErrNotExist && !errors.As(why, &large) {
			t.Errorf("%+v: %q, %v", c, before, why)
		}
		if got, err := f.ReadFile("sub/f", 100); err != nil || string(got) != c.data {
			t.Errorf("%q, %v", got, err)
		}
	}
	if _, err := f.Replace("../f", nil, 10, func([]byte, error) { t.Error("looked outside") }); !errors.Is(err, sandbox.ErrEscapes) {
		t.Error(err)
	}
}
