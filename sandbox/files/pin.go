package files

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"
)

// errMoved: a directory on the way was exchanged for something else meanwhile.
var errMoved = errors.New("was moved or replaced while it was opened; try again")

// pinTries is how often a directory that somebody moves is opened again.
const pinTries = 8

// pin opens the directory rel, whose links are resolved, and proves that no link
// led there. os.Root keeps a link that was put into the way meanwhile from leading
// out of the workspace, but not from leading to a place in it that the name was
// checked not to be: the reserved directory, or what FS.Guarded guards.
func (st *state) pin(rel string) (dir *os.Root, err error) {
	for range pinTries {
		if dir, err = st.tryPin(rel); err != errMoved {
			break
		}
	}
	return dir, err
}

func (st *state) tryPin(rel string) (*os.Root, error) {
	dir, err := st.root.OpenRoot(".")
	if err != nil || rel == "." {
		return dir, err
	}
	for name := range strings.SplitSeq(rel, "/") {
		sub, err := enter(dir, name)
		dir.Close()
		if err != nil {
			return nil, err
		}
		dir = sub
	}
	return dir, nil
}

// enter opens the directory called name in dir, if it is no link. The "/." keeps
// it from waiting on a FIFO that took the directory's place.
func enter(dir *os.Root, name string) (*os.Root, error) {
	sub, err := dir.OpenRoot(name + "/.")
	if err != nil {
		return nil, err
	}
	entry, err := dir.Lstat(name)
	if err == nil {
		var opened fs.FileInfo
		if opened, err = sub.Stat("."); err == nil && !os.SameFile(entry, opened) {
			err = errMoved
		}
	}
	if err != nil {
		sub.Close()
		return nil, err
	}
	return sub, nil
}

// openEntry opens the file at rel, whose links are resolved, for reading, if it is
// wanted.
func (st *state) openEntry(rel string, wanted func(fs.FileInfo) error) (*os.File, error) {
	dir, err := st.pin(path.Dir(rel))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entry, err := dir.Lstat(path.Base(rel))
	if err == nil {
		err = wanted(entry)
	}
	if err != nil {
		return nil, err
	}
	file, err := openLeased(dir, path.Base(rel))
	if err != nil {
		return nil, err
	}
	if opened, err := file.Stat(); err != nil || !os.SameFile(entry, opened) {
		file.Close()
		return nil, errMoved
	}
	return file, nil
}

// leaseWait is how long a file is waited for that another program has a lease on.
// The kernel asks that program to give it up; one that does not answer would hold
// the file for 45 seconds.
const leaseWait = time.Second

// openLeased opens a file that another program may have a lease on.
func openLeased(dir *os.Root, name string) (file *os.File, err error) {
	for pause := time.Millisecond; pause < leaseWait; pause *= 2 {
		file, err = dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if !errors.Is(err, syscall.EAGAIN) {
			break
		}
		time.Sleep(pause)
	}
	return file, err
}
