package files

import (
	"bytes"
	"errors"
	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/internal/disk"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

// Write creates the file name or replaces its whole content, in one step: a
// reader sees the old content or the new, and after an error the old. Missing
// parents are created. A link stays a link and its target is written; an
// existing file keeps its permission bits. Writers of one file take turns.
func (f *FS) Write(name string, data []byte) (Path, error) {
	return f.update(name, func(*state, Path) ([]byte, bool, error) { return data, true, nil })
}

// Replace is Write that shows what stood there before, while no other writer of this FS
// can come between: before is called with the content of at most limit bytes, or with
// the reason why there is none (fs.ErrNotExist, *TooLargeError, ...), which is no reason
// not to write.
func (f *FS) Replace(name string, data []byte, limit int64, before func(old []byte, err error)) (Path, error) {
	return f.update(name, func(st *state, p Path) ([]byte, bool, error) {
		if p.Exists {
			before(f.readUpTo(st, name, p, limit))
		} else {
			before(nil, fs.ErrNotExist)
		}
		return data, true, nil
	})
}

// Edit replaces the content of the file name by what change makes of it, while
// no other writer of this FS can come between. The file must exist and have at
// most Limits.EditBytes bytes (*TooLargeError). Equal content writes nothing, and
// an error of change is returned as it is.
func (f *FS) Edit(name string, change func(old []byte) ([]byte, error)) (Path, error) {
	p, err := f.update(name, func(st *state, p Path) ([]byte, bool, error) {
		old, err := f.read(st, name, p)
		if err != nil {
			return nil, false, err
		}
		data, err := change(bytes.Clone(old))
		return data, err == nil && !bytes.Equal(old, data), err
	})
	if errors.Is(err, sandbox.ErrParentIsFile) {
		err = &sandbox.PathError{Path: name, Err: fs.ErrNotExist} // nothing is created here
	}
	return p, err
}

// update writes what content returns for the place, under the place's lock.
func (f *FS) update(name string, content func(*state, Path) (data []byte, write bool, err error)) (Path, error) {
	return within(f, func(st *state) (Path, error) {
		p, err := f.resolve(st, name, true)
		if err != nil {
			return Path{}, explain(name, err, sandbox.ErrNotWritable)
		}
		if err := f.guard(name, p); err != nil {
			return Path{}, err
		}
		key := lockKey(p.Rel)
		f.locks.lock(key)
		defer f.locks.unlock(key)
		data, write, err := content(st, p)
		if err != nil {
			return Path{}, err
		}
		if write {
			err = f.put(st, name, p, data)
		}
		if err != nil {
			return Path{}, explain(name, err, sandbox.ErrNotWritable)
		}
		p.Exists, p.Type = true, 0
		return p, nil
	})
}

// read returns the content of the file at p.
func (f *FS) read(st *state, name string, p Path) ([]byte, error) {
	return f.readUpTo(st, name, p, f.limits.EditBytes)
}

func (f *FS) readUpTo(st *state, name string, p Path, limit int64) ([]byte, error) {
	if data, ok := st.readPlain(p.Rel, limit); ok {
		return data, nil
	}
	file, err := f.openAt(st, name, p)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return slurp(name, file, limit)
}

// put writes data to the file at p.
func (f *FS) put(st *state, name string, p Path, data []byte) error {
	f.parents.RLock()
	t, err := f.target(st, name, p)
	if err == nil {
		err = t.replace(data, f.Durable)
	}
	t.close()
	f.parents.RUnlock()
	if err != nil {
		f.takeBack(t)
	}
	return err
}

// A target is a file about to be written: its directory, open, so that what
// happens to the path no longer matters, and what is there now.
type target struct {
	st   *state
	dir  *os.Root
	base string
	info fs.FileInfo // nil: nothing there yet
	made []string    // parents that were created for it, outermost first
}

// target opens and inspects the place p. It is to be closed also after an error,
// and given to takeBack then. f.parents is held for reading.
func (f *FS) target(st *state, name string, p Path) (*target, error) {
	t := &target{st: st, base: path.Base(p.Rel)}
	if p.Rel == "." {
		return t, &sandbox.PathError{Path: name, Err: sandbox.ErrIsDirectory}
	}
	err := t.open(path.Dir(p.Rel))
	if err == nil {
		err = t.inspect(name, p)
	}
	if errors.Is(err, syscall.ENOTDIR) {
		err = &sandbox.PathError{Path: name, Parent: path.Dir(p.Rel), Err: sandbox.ErrParentIsFile}
	}
	return t, err
}

func (t *target) replace(data []byte, durable bool) error {
	tmp, err := disk.Stage(t.dir, data, t.info, nil)
	if err != nil {
		return err
	}
	err = tmp.Replace(t.base, durable)
	if left := tmp.Discard(); err == nil {
		err = left
	}
	return err
}

// open pins the directory, creating what is missing of it.
func (t *target) open(dir string) error {
	var err error
	if t.dir, err = t.st.pin(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if t.dir, err = t.st.pin("."); err != nil {
		return err
	}
	at := 0
	for name := range strings.SplitSeq(dir, "/") {
		at += len(name)
		switch err := t.dir.Mkdir(name, 0o777); {
		case err == nil:
			t.made = append(t.made, dir[:at])
		case !errors.Is(err, fs.ErrExist):
			return err
		}
		sub, err := enter(t.dir, name)
		if err != nil {
			return err
		}
		t.dir.Close()
		t.dir = sub
		at++ // the slash
	}
	return nil
}

// inspect looks at what is there and refuses what may not be replaced.
func (t *target) inspect(name string, p Path) error {
	info, err := t.dir.Lstat(t.base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	now := Path{Exists: true, Type: info.Mode().Type()}
	if p.Type&now.Type&fs.ModeSymlink != 0 {
		t.info = info // a link that a transaction replaces by a file
		return nil
	}
	if err := wantRegular(name, now); err != nil {
		return err
	}
	if info.Mode()&0o200 == 0 || disk.OwnedByOther(info) && !t.writable() {
		return &sandbox.PathError{Path: name, Err: sandbox.ErrNotWritable}
	}
	t.info = info
	return nil
}

// writable asks the system, for a file whose owner is somebody else.
func (t *target) writable() bool {
	file, err := t.dir.OpenFile(t.base, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	file.Close()
	return true
}

func (t *target) close() {
	if t.dir != nil {
		t.dir.Close()
	}
}

// takeBack removes the parents that were created for targets that failed, as far
// as they are empty. It waits for the writers that may be about to use them.
func (f *FS) takeBack(targets ...*target) {
	f.parents.Lock()
	defer f.parents.Unlock()
	for _, t := range slices.Backward(targets) {
		for _, dir := range slices.Backward(t.made) {
			if in, err := t.st.pin(path.Dir(dir)); err == nil {
				_ = in.Remove(path.Base(dir)) // not empty: it is in use by now
				in.Close()
			}
		}
	}
}
