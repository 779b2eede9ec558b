package files

import (
	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/internal/disk"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
)

// An FS is the files below one workspace directory. Names are the caller's:
// relative to the workspace or absolute below it, in any spelling; what they may
// be and where they lead is decided in path.go and links.go. The kernel, asked by
// os.Root or openat2, enforces that nothing outside is ever read or written. Methods return
// *PathError for whatever is wrong with a name, and may be called concurrently.
type FS struct {
	// Durable makes every write reach the disk before it is reported done. Set it
	// before the first use.
	Durable bool

	// Guarded makes what git executes for its user read only, as it is for commands
	// of the mode Isolate. Set it before the first use.
	Guarded bool

	real, given string   // the root: links resolved; as it was opened, made absolute
	prefix      string   // real with a separator at its end
	above       *os.Root // what the root lies in; may be nil
	limits      sandbox.Limits
	cur         atomic.Pointer[state]
	reopen      sync.Mutex
	locks       locks
	parents     sync.RWMutex // read: a write is under way; write: its empty parents are removed
}

// Open opens the workspace dir, which must exist. Nothing on disk changes.
func Open(dir string, l sandbox.Limits) (*FS, error) {
	given, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(given)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, err
	}
	st, err := openState(root)
	if err != nil {
		return nil, err
	}
	f := &FS{real: real, given: given, prefix: disk.WithSeparator(real), limits: l.WithDefaults()}
	if parent := filepath.Dir(real); parent != real {
		f.above, _ = os.OpenRoot(parent) // nil where it may not be read: then nothing is opened again
	}
	f.cur.Store(st)
	return f, nil
}

// Close releases the workspace. Calls after it fail with fs.ErrClosed.
func (f *FS) Close() error {
	f.reopen.Lock()
	defer f.reopen.Unlock()
	st := f.cur.Swap(nil)
	if st == nil {
		return nil
	}
	// st.fd stays open until the collector finds that no call uses it: closed
	// under a running call, its number could soon mean another directory.
	if f.above != nil {
		_ = f.above.Close()
	}
	return st.root.Close()
}

// Root returns the absolute path of the workspace, all links resolved.
func (f *FS) Root() string { return f.real }

// Clean returns name as a slash-separated path below the workspace, "." for the
// workspace itself: as text, whatever is there, and links are not looked at.
func (f *FS) Clean(name string) (string, error) {
	return within(f, func(st *state) (string, error) { return f.clean(st, name) })
}

// Resolve returns where name leads, all links followed. Nothing need be there.
func (f *FS) Resolve(name string) (Path, error) {
	return within(f, func(st *state) (Path, error) {
		p, err := f.resolve(st, name, true)
		if err == nil && !p.Exists {
			if fresh := f.refresh(st); fresh != nil {
				p, err = f.resolve(fresh, name, true)
			}
		}
		if err != nil {
			return Path{}, forReading(name, err)
		}
		return p, nil
	})
}

// ResolveDir is Resolve for a directory that must exist: fs.ErrNotExist and
// ErrNotDirectory tell what is there instead.
func (f *FS) ResolveDir(name string) (Path, error) {
	return within(f, func(st *state) (Path, error) { return f.dir(st, name) })
}

func (f *FS) dir(st *state, name string) (Path, error) {
	p, err := f.resolve(st, name, true)
	switch {
	case err != nil:
		return Path{}, forReading(name, err)
	case !p.Exists:
		return Path{}, &sandbox.PathError{Path: name, Err: fs.ErrNotExist}
	case !p.IsDir():
		return Path{}, &sandbox.PathError{Path: name, Err: sandbox.ErrNotDirectory}
	}
	return p, nil
}

// Stat describes what name leads to, all links followed.
func (f *FS) Stat(name string) (fs.FileInfo, error) {
	return within(f, func(st *state) (fs.FileInfo, error) {
		p, err := f.resolve(st, name, true)
		if err != nil {
			return nil, forReading(name, err)
		}
		dir, err := st.pin(path.Dir(p.Rel))
		if err != nil {
			return nil, forReading(name, err)
		}
		defer dir.Close()
		info, err := dir.Lstat(path.Base(p.Rel))
		if err != nil {
			return nil, forReading(name, err)
		}
		return info, nil
	})
}

// ReadDir lists a directory by name, without the reserved entry at the top.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	return within(f, func(st *state) ([]fs.DirEntry, error) {
		p, err := f.dir(st, name)
		if err != nil {
			return nil, err
		}
		dir, err := st.pin(p.Rel)
		if err != nil {
			return nil, forReading(name, err)
		}
		defer dir.Close()
		list, err := fs.ReadDir(dir.FS(), ".")
		if err != nil {
			return nil, forReading(name, err)
		}
		if p.Rel == "." {
			list = slices.DeleteFunc(list, func(e fs.DirEntry) bool { return reserved(e.Name()) })
		}
		return list, nil
	})
}

// WithRoot calls do with the root of the tree, which must not outlive that call.
func (f *FS) WithRoot(do func(*os.Root) error) error {
	st := f.cur.Load()
	if st == nil {
		return fs.ErrClosed
	}
	return do(st.root)
}
