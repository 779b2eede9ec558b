package sandbox

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// An FS is the files below one workspace directory. Names are the caller's:
// relative to the workspace or absolute below it, in any spelling; what they may
// be and where they lead is decided in path.go and links.go. The kernel, through
// os.Root, enforces that nothing outside is ever read or written. Methods return
// *PathError for whatever is wrong with a name, and may be called concurrently.
type FS struct {
	// Durable makes every write reach the disk before it is reported done. Set it
	// before the first use.
	Durable bool

	real, given string // the root: links resolved; as it was opened, made absolute
	prefix      string // real with a separator at its end
	limits      Limits
	cur         atomic.Pointer[state]
	reopen      sync.Mutex
	generation  atomic.Int64
	locks       locks
	parents     sync.RWMutex // read: a write is under way; write: its empty parents are removed
}

// Open opens the workspace dir, which must exist. Nothing on disk changes.
func Open(dir string, l Limits) (*FS, error) {
	given, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(given)
	if err != nil {
		return nil, err
	}
	st, err := openState(real)
	if err != nil {
		return nil, err
	}
	f := &FS{real: real, given: given, prefix: withSeparator(real), limits: l.WithDefaults()}
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
	return st.root.Close()
}

// Root returns the absolute path of the workspace, all links resolved.
func (f *FS) Root() string { return f.real }

// Generation counts how often the workspace was found deleted and made again.
// Whoever keeps something that is bound to the directory itself compares it.
func (f *FS) Generation() int64 { return f.generation.Load() }

// Resolve returns where name leads, all links followed. Nothing need be there.
func (f *FS) Resolve(name string) (Path, error) { return f.locate(name, true) }

// ResolveDir is Resolve for a directory that must exist: fs.ErrNotExist and
// ErrNotDirectory tell what is there instead.
func (f *FS) ResolveDir(name string) (Path, error) {
	return run(f, func(st *state) (Path, error) { return f.dir(st, name) })
}

func (f *FS) dir(st *state, name string) (Path, error) {
	p, err := f.resolve(st, name, true)
	switch {
	case err != nil:
		return Path{}, forReading(name, err)
	case !p.Exists:
		return Path{}, &PathError{Path: name, Err: fs.ErrNotExist}
	case !p.IsDir():
		return Path{}, &PathError{Path: name, Err: ErrNotDirectory}
	}
	return p, nil
}

func (f *FS) locate(name string, follow bool) (Path, error) {
	return run(f, func(st *state) (Path, error) {
		p, err := f.resolve(st, name, follow)
		if err == nil && !p.Exists && f.refresh(st) != nil {
			p, err = f.resolve(f.cur.Load(), name, follow)
		}
		if err != nil {
			return Path{}, forReading(name, err)
		}
		return p, nil
	})
}

// A File is a regular file opened for reading.
type File struct {
	*os.File
	info fs.FileInfo
	path Path
}

// Size is the number of bytes when the file was opened.
func (f *File) Size() int64 { return f.info.Size() }

// ModTime is when the content last changed, as of the opening.
func (f *File) ModTime() time.Time { return f.info.ModTime() }

// Mode is the mode as of the opening.
func (f *File) Mode() fs.FileMode { return f.info.Mode() }

// Path is where the file is, all links resolved.
func (f *File) Path() Path { return f.path }

// Open opens a regular file for reading; whatever else is there is refused
// without being touched.
func (f *FS) Open(name string) (*File, error) {
	return run(f, func(st *state) (*File, error) { return f.open(st, name) })
}

func (f *FS) open(st *state, name string) (*File, error) {
	rel, err := f.clean(st, name)
	if err != nil {
		return nil, err
	}
	p := f.path(rel)
	if file := st.openPlain(rel, p.Abs); file != nil {
		return admit(name, p, file)
	}
	if p, err = f.resolve(st, name, true); err != nil {
		return nil, forReading(name, err)
	}
	return f.openAt(st, name, p)
}

// openAt opens the regular file at p, a place already resolved.
func (f *FS) openAt(st *state, name string, p Path) (*File, error) {
	if file := st.openPlain(p.Rel, p.Abs); file != nil {
		return admit(name, p, file)
	}
	info, err := st.root.Lstat(p.Rel)
	if err != nil {
		return nil, forReading(name, err)
	}
	p.Exists, p.Type = true, info.Mode().Type()
	if err := wantRegular(name, p); err != nil {
		return nil, err
	}
	file, err := st.root.OpenFile(p.Rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, forReading(name, err)
	}
	return admit(name, p, file)
}

// admit takes an opened file if it is a regular one after all.
func admit(name string, p Path, file *os.File) (*File, error) {
	info, err := file.Stat()
	if err == nil {
		p.Exists, p.Type = true, info.Mode().Type()
		err = wantRegular(name, p)
	}
	if err != nil {
		file.Close()
		return nil, forReading(name, err)
	}
	return &File{File: file, info: info, path: p}, nil
}

func wantRegular(name string, p Path) error {
	switch {
	case !p.Exists:
		return &PathError{Path: name, Err: fs.ErrNotExist}
	case p.IsDir():
		return &PathError{Path: name, Err: ErrIsDirectory}
	case p.Type != 0:
		return &PathError{Path: name, Err: ErrNotRegular}
	}
	return nil
}

// ReadFile returns the content of a regular file of at most limit bytes;
// otherwise the error wraps a *TooLargeError.
func (f *FS) ReadFile(name string, limit int64) ([]byte, error) {
	return run(f, func(st *state) ([]byte, error) {
		rel, err := f.clean(st, name)
		if err != nil {
			return nil, err
		}
		if data, ok := st.readPlain(rel, limit); ok {
			return data, nil
		}
		file, err := f.open(st, name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		return slurp(name, file, limit)
	})
}

func slurp(name string, file *File, limit int64) ([]byte, error) {
	size := file.Size()
	if size > limit {
		return nil, tooLarge(name, size, limit)
	}
	// One byte more than expected, so that the end shows in the same read.
	data := make([]byte, size+1)
	n, err := io.ReadFull(file, data)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return data[:n], nil
	}
	if err != nil {
		return nil, explain(name, err, ErrNotReadable)
	}
	return slurpOn(name, file, data, limit)
}

// slurpOn reads on in a file that grew after it was opened, or that says 0 as
// files of /proc do.
func slurpOn(name string, file *File, data []byte, limit int64) ([]byte, error) {
	rest, err := io.ReadAll(io.LimitReader(file, limit+1-int64(len(data))))
	if err != nil {
		return nil, explain(name, err, ErrNotReadable)
	}
	data = append(data, rest...)
	if int64(len(data)) > limit {
		return nil, tooLarge(name, int64(len(data)), limit)
	}
	return data, nil
}

func tooLarge(name string, size, limit int64) error {
	return &PathError{Path: name, Err: &TooLargeError{Path: name, Size: size, Limit: limit}}
}

// Stat describes what name leads to, all links followed.
func (f *FS) Stat(name string) (fs.FileInfo, error) { return f.stat(name, true) }

// Lstat describes the entry name itself, which may be a link, also one that
// leads outside or nowhere.
func (f *FS) Lstat(name string) (fs.FileInfo, error) { return f.stat(name, false) }

func (f *FS) stat(name string, follow bool) (fs.FileInfo, error) {
	return run(f, func(st *state) (fs.FileInfo, error) {
		p, err := f.resolve(st, name, follow)
		if err != nil {
			return nil, forReading(name, err)
		}
		info, err := st.root.Lstat(p.Rel)
		if err != nil {
			return nil, forReading(name, err)
		}
		return info, nil
	})
}

// Readlink returns the target of the link name, as it is written there.
func (f *FS) Readlink(name string) (string, error) {
	return run(f, func(st *state) (string, error) {
		p, err := f.resolve(st, name, false)
		if err != nil {
			return "", forReading(name, err)
		}
		target, err := st.root.Readlink(p.Rel)
		if err != nil {
			return "", forReading(name, err)
		}
		return target, nil
	})
}

// ReadDir lists a directory by name, without the reserved entry at the top.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	d, err := f.OpenDir(name)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	list, err := d.Entries()
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, err
}
