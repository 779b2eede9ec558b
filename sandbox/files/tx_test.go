package files

import (
	"errors"
	"fmt"
	"github.com/perstack-ai/perstack-base/sandbox"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// snapshot is the whole workspace as text, to compare before and after.
func (w *world) snapshot() string {
	w.Helper()
	var b strings.Builder
	must(w.T, filepath.WalkDir(w.ws, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := ""
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			content, _ = os.Readlink(p)
		case d.Type().IsRegular():
			data, _ := os.ReadFile(p)
			content = string(data)
		}
		fmt.Fprintf(&b, "%s %v %s\n", p, info.Mode(), content)
		return nil
	}))
	return b.String()
}

func TestTransact(t *testing.T) {
	w := newWorld(t)
	w.file("change", "old")
	must(t, os.Chmod(w.path("change"), 0o755))
	w.file("delete", "gone")
	w.file("move", "moved")
	w.file("d/target", "t")
	w.link("link", "d/target")
	w.link("leak", w.canary)
	w.link("nowhere", "no/such")
	mode := fs.FileMode(0o640)
	err := w.fs.Transact([]string{"change", "leak", "../bad"}, func(tx *Tx) error {
		old, err := tx.ReadFile("change")
		must(t, err)
		must(t, tx.Write("change", append(old, "+new"...), nil))
		must(t, tx.Remove("delete"))
		data, err := tx.ReadFile("move")
		must(t, err)
		must(t, tx.Write("new/place", data, &mode))
		must(t, tx.Remove("move"))
		must(t, tx.Write("link", []byte("through"), nil))
		must(t, tx.Remove("leak"))
		must(t, tx.Remove("nowhere"))

		// What is planned is seen, and nothing of it is on the disk yet.
		if got, err := tx.ReadFile("change"); string(got) != "old+new" || err != nil {
			t.Errorf("change within: %q, %v", got, err)
		}
		if _, err := tx.ReadFile("delete"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("delete within: %v", err)
		}
		if p, err := tx.Look("leak", false); p.Exists || err != nil {
			t.Errorf("leak within: %+v, %v", p, err)
		}
		if p, err := tx.Look("new/place", true); !p.Exists || err != nil {
			t.Errorf("new/place within: %+v, %v", p, err)
		}
		if e, err := tx.Look("new/place", true); e.Perm != 0o640 || e.Size != 5 || err != nil {
			t.Errorf("mode within: %+v, %v", e, err)
		}
		if e, err := tx.Look("change", true); e.Perm != 0o755 || e.Size != 7 || err != nil {
			t.Errorf("mode within: %+v, %v", e, err)
		}
		w.want("change", "old")
		w.want("delete", "gone")
		return nil
	})
	must(t, err)
	w.want("change", "old+new")
	w.mode("change", 0o755)
	w.want("new/place", "moved")
	w.mode("new/place", 0o640)
	w.want("d/target", "through")
	for _, gone := range []string{"delete", "move", "leak", "nowhere"} {
		if _, err := os.Lstat(w.path(gone)); err == nil {
			t.Errorf("%s is still there", gone)
		}
	}
	w.clean()
}

func TestTransactRewritesItsOwnPlan(t *testing.T) {
	w := newWorld(t)
	w.file("f", "old")
	w.link("l", "f")
	must(t, w.fs.Transact(nil, func(tx *Tx) error {
		must(t, tx.Write("twice", []byte("1"), nil))
		must(t, tx.Write("twice", []byte("2"), nil))
		must(t, tx.Write("never/made", []byte("1"), nil))
		must(t, tx.Remove("never/made"))
		// A removed link is no way any more: the name becomes a file of its own.
		must(t, tx.Remove("l"))
		return tx.Write("l", []byte("own"), nil)
	}))
	w.want("twice", "2")
	w.want("l", "own")
	w.want("f", "old")
	if _, err := os.Lstat(w.path("never")); err == nil {
		t.Error("never/made was made")
	}
	w.clean()
}

// What is removed makes room for a directory of its name.
func TestTransactBelowWhatItRemoves(t *testing.T) {
	w := newWorld(t)
	w.file("a", "file")
	must(t, os.Chmod(w.path("a"), 0o755))
	w.file("real/b", "kept")
	w.link("dir", "real")
	w.link("leak", w.out)
	w.link("sub", "real")
	must(t, w.fs.Transact([]string{"a", "a/b"}, func(tx *Tx) error {
		for _, name := range []string{"a", "dir", "leak"} {
			must(t, tx.Remove(name))
			must(t, tx.Write(name+"/b", []byte("new "+name), nil))
		}
		mode := fs.FileMode(0o700)
		must(t, tx.Write("a/c/d/../d", []byte("deep"), &mode))
		must(t, tx.Remove("sub/b"))
		must(t, tx.Write("sub/b/b", []byte("through a link"), nil))
		must(t, tx.Write("a/gone", nil, nil))
		must(t, tx.Remove("a/gone"))
		if got, err := tx.ReadFile("a/b"); string(got) != "new a" || err != nil {
			t.Errorf("a/b within: %q, %v", got, err)
		}
		if err := tx.Write("a/b/c", nil, nil); !errors.Is(err, sandbox.ErrParentIsFile) {
			t.Errorf("below a new file: %v", err)
		}
		if e, err := tx.Look("dir/none", true); e.Exists || err != nil {
			t.Errorf("what the link showed is gone: %+v, %v", e, err)
		}
		return nil
	}))
	w.want("a/b", "new a")
	w.want("a/c/d", "deep")
	w.mode("a/c/d", 0o700)
	w.want("dir/b", "new dir")
	w.want("leak/b", "new leak")
	w.want("real/b/b", "through a link")
	if info, err := os.Lstat(w.path("dir")); err != nil || !info.IsDir() {
		t.Errorf("dir is no directory of its own: %v", err)
	}
	w.clean()
}

// Whatever step fails, everything is as it was.
func TestTransactAllOrNothing(t *testing.T) {
	fail := errors.New("planned failure")
	for name, bad := range map[string]func(*Tx) error{
		"fn fails":      func(*Tx) error { return fail },
		"read-only":     func(tx *Tx) error { return tx.Write("readonly", nil, nil) },
		"parent a file": func(tx *Tx) error { return tx.Write("a/x", nil, nil) },
		"outside":       func(tx *Tx) error { return tx.Write("leakdir/x", nil, nil) },
		"name too long": func(tx *Tx) error { return tx.Write("deep/er/"+strings.Repeat("x", 300), nil, nil) },
		"both below and at": func(tx *Tx) error {
			return errors.Join(tx.Write("deep/er/x", nil, nil), tx.Write("deep/er", nil, nil))
		},
		"below what is removed, and at it": func(tx *Tx) error {
			return errors.Join(tx.Remove("d/c"), tx.Write("d/c/x", nil, nil), tx.Write("d/c", nil, nil))
		},
		"too long below what is removed": func(tx *Tx) error {
			return errors.Join(tx.Remove("d/c"), tx.Write("d/c/x/"+strings.Repeat("x", 300), nil, nil))
		},
		"in the way below what is removed": func(tx *Tx) error {
			must(t, tx.Remove("d/c"))
			must(t, tx.Write("d/c/x/y", nil, nil))
			must(t, tx.Write("d/c/"+strings.Repeat("x", 300), nil, nil))
			return tx.Write("d/c/z", nil, nil)
		},
		"reserved":           func(tx *Tx) error { return tx.Remove("perstack/x") },
		"remove a directory": func(tx *Tx) error { return tx.Remove("d") },
		"remove nothing":     func(tx *Tx) error { return tx.Remove("none") },
		"removed meanwhile": func(tx *Tx) error {
			must(t, tx.Remove("victim"))
			return os.Remove(tx.f.real + "/victim")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.file("a", "A")
			w.file("b", "B")
			w.file("d/c", "C")
			w.file("perstack/x", "P")
			w.file("readonly", "R")
			must(t, os.Chmod(w.path("readonly"), 0o444))
			w.link("leak", w.canary)
			w.link("leakdir", w.out)
			before := w.snapshot()
			if name == "removed meanwhile" {
				w.file("victim", "V")
			}
			err := w.fs.Transact(nil, func(tx *Tx) error {
				must(t, tx.Write("a", []byte("new"), nil))
				must(t, tx.Write("n/e/w", []byte("new"), nil))
				must(t, tx.Remove("b"))
				must(t, tx.Remove("leak"))
				return bad(tx)
			})
			if err == nil {
				t.Fatal("it succeeded")
			}
			if after := w.snapshot(); after != before {
				t.Errorf("%v\nbefore:\n%s\nafter:\n%s", err, before, after)
			}
			w.clean()
		})
	}
}

// A step that fails after others were applied: the disk changes between.
func TestUndo(t *testing.T) {
	w := newWorld(t)
	w.file("a", "A")
	w.file("b", "B")
	w.link("l", "nowhere")
	w.file("last", "L")
	w.link("l2", "b")
	before := w.snapshot()
	st := w.fs.cur.Load()
	tx := &Tx{f: w.fs, st: st, held: map[string]bool{}, changes: map[string]*change{}}
	must(t, tx.Write("a", []byte("new"), nil))
	must(t, tx.Write("created/x", []byte("new"), nil))
	must(t, tx.Remove("b"))
	must(t, tx.Remove("l"))
	must(t, tx.Remove("last"))
	must(t, tx.Remove("l2"))
	must(t, tx.Write("l2", []byte("own"), nil))
	must(t, tx.Write("b/in/side", []byte("new"), nil))
	must(t, tx.Write("b/in/to", []byte("new"), nil))
	steps, err := tx.prepare()
	must(t, err)
	must(t, applyAll(steps, false))
	w.want("a", "new")
	cause := errors.New("cause")
	if err := undo(steps, cause); err != cause {
		t.Errorf("undo: %v", err)
	}
	w.fs.takeBack(finish(steps)...)
	tx.release()
	if after := w.snapshot(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	w.clean()
}

func TestUndoNamesWhatItCannotRestore(t *testing.T) {
	w := newWorld(t)
	w.file("a", "A")
	tx := &Tx{f: w.fs, st: w.fs.cur.Load(), held: map[string]bool{}, changes: map[string]*change{}}
	must(t, tx.Remove("a"))
	s := &step{c: tx.order[0]}
	must(t, s.prepare(tx))
	must(t, s.apply(false))
	must(t, os.MkdirAll(w.path("a/in/the/way"), 0o755))
	cause := &sandbox.PathError{Path: "x", Err: sandbox.ErrNotWritable}
	err := undo([]*step{s}, cause)
	var restore *sandbox.RestoreError
	if !errors.As(err, &restore) || len(restore.Names) != 1 || restore.Names[0] != "a" || !errors.Is(err, sandbox.ErrNotWritable) {
		t.Errorf("undo: %v", err)
	}
	finish([]*step{s})
	tx.release()
}

// Transactions that name the same files in opposite orders neither wait for
// each other for ever nor lose a change.
func TestTransactionsDoNotDeadlock(t *testing.T) {
	w := newWorld(t)
	names := []string{"a", "b", "c", "d"}
	for _, n := range names {
		w.file(n, "")
	}
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			err := w.fs.Transact(nil, func(tx *Tx) error {
				for j := range names {
					n := names[(i+j)%len(names)]
					old, err := tx.ReadFile(n)
					if err != nil {
						return err
					}
					if err := tx.Write(n, append(old, 'x'), nil); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			_, err = w.fs.Edit(names[i%len(names)], func(old []byte) ([]byte, error) { return append(old, 'y'), nil })
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, n := range names {
		got, _ := w.read(n)
		if x, y := strings.Count(got, "x"), strings.Count(got, "y"); x != 60 || y != 15 {
			t.Errorf("%s has %d x and %d y, want 60 and 15", n, x, y)
		}
	}
	w.clean()
}
