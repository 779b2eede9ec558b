package files

import (
	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/internal/disk"
	"io"
	"io/fs"
	"os"
	"time"
)

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

// settled is how long ago a file must have changed for its times to tell that it
// has not changed since: they are no finer than the clock of the disk.
const settled = 2 * time.Second

// A version is one state of a file.
type version struct {
	path             string
	inode            uint64
	size             int64
	modTime, changed int64 // ns
}

// Version is a comparable value that no other content of the file has; ok is false
// where that cannot be told: the system does not say, or it changed a moment ago.
func (f *File) Version() (v any, ok bool) {
	inode, changed := disk.Identity(f.info)
	if inode == 0 || time.Since(time.Unix(0, changed)) < settled {
		return nil, false
	}
	return version{f.path.Abs, inode, f.info.Size(), f.info.ModTime().UnixNano(), changed}, true
}

// Open opens a regular file for reading; whatever else is there is refused
// without being touched.
func (f *FS) Open(name string) (*File, error) {
	return within(f, func(st *state) (*File, error) { return f.open(st, name) })
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
	file, err := st.openEntry(p.Rel, func(info fs.FileInfo) error {
		p.Exists, p.Type = true, info.Mode().Type()
		return wantRegular(name, p)
	})
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
		return &sandbox.PathError{Path: name, Err: fs.ErrNotExist}
	case p.IsDir():
		return &sandbox.PathError{Path: name, Err: sandbox.ErrIsDirectory}
	case p.Type != 0:
		return &sandbox.PathError{Path: name, Err: sandbox.ErrNotRegular}
	}
	return nil
}

// ReadFile returns the content of a regular file of at most limit bytes;
// otherwise the error wraps a *TooLargeError.
func (f *FS) ReadFile(name string, limit int64) ([]byte, error) {
	return within(f, func(st *state) ([]byte, error) {
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
		return nil, explain(name, err, sandbox.ErrNotReadable)
	}
	return slurpOn(name, file, data, limit)
}

// slurpOn reads on in a file that grew after it was opened, or that says 0 as
// files of /proc do.
func slurpOn(name string, file *File, data []byte, limit int64) ([]byte, error) {
	rest, err := io.ReadAll(io.LimitReader(file, limit+1-int64(len(data))))
	if err != nil {
		return nil, explain(name, err, sandbox.ErrNotReadable)
	}
	data = append(data, rest...)
	if int64(len(data)) > limit {
		return nil, tooLarge(name, int64(len(data)), limit)
	}
	return data, nil
}

func tooLarge(name string, size, limit int64) error {
	return &sandbox.PathError{Path: name, Err: &sandbox.TooLargeError{Path: name, Size: size, Limit: limit}}
}
