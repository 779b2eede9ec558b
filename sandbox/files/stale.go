package files

import (
	"errors"
	"github.com/perstack-ai/perstack-base/sandbox"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// A state is one opening of the workspace directory. It is replaced when the
// directory was deleted and made again. Calls that still run on an old state
// keep it alive; the collector closes it after the last of them.
type state struct {
	root *os.Root
	info fs.FileInfo // of the root itself, to know it under another name
	top  *os.File    // owns fd
	fd   int         // the same directory, for calls that os.Root does not have
}

func openState(root *os.Root) (*state, error) {
	learnEscape(root)
	var err error
	st := &state{root: root}
	if st.top, err = root.Open("."); err == nil {
		st.info, err = st.top.Stat()
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	st.fd = int(st.top.Fd())
	return st, nil
}

// within calls do with the current state, and once more with a fresh one when
// nothing was found because the workspace was deleted and made again.
func within[T any](f *FS, do func(*state) (T, error)) (T, error) {
	st := f.cur.Load()
	if st == nil {
		var none T
		return none, fs.ErrClosed
	}
	got, err := do(st)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return got, err
	}
	if st = f.refresh(st); st == nil {
		return got, err
	}
	return do(st)
}

// refresh opens the workspace again if another directory stands in its place
// than the one st has open; nil if not. Its parent is the one that was opened at
// first, and a link is no directory: who may write there cannot lead us elsewhere.
func (f *FS) refresh(st *state) *state {
	if f.above == nil {
		return nil
	}
	base := filepath.Base(f.real)
	now, err := f.above.Lstat(base)
	if err != nil || !now.IsDir() || os.SameFile(now, st.info) {
		return nil
	}
	f.reopen.Lock()
	defer f.reopen.Unlock()
	cur := f.cur.Load()
	if cur == nil || cur != st {
		return cur
	}
	root, err := f.above.OpenRoot(base)
	if err != nil {
		return nil
	}
	if cur, err = openState(root); err != nil {
		return nil
	}
	if !os.SameFile(now, cur.info) { // a link that came in between
		_ = root.Close()
		return nil
	}
	f.cur.Store(cur)
	return cur
}

var (
	escapeOnce sync.Once
	errEscape  error
)

// learnEscape finds the identity of os.Root's error for a path that leads out,
// which package os does not export.
func learnEscape(root *os.Root) {
	escapeOnce.Do(func() {
		_, err := root.Lstat("../x")
		errEscape = sandbox.Reason(err)
	})
}

func escapeError() error { return errEscape }
