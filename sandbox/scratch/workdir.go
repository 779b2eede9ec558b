package scratch

import (
	"errors"
	"fmt"
	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/files"
	"github.com/perstack-ai/perstack-base/sandbox/internal/disk"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
)

// A Workdir is the private tree of one session. Commands write in it, so it is
// as hostile as a workspace: names are resolved by its FS, and changes go
// through os.Root, which no link leads out of.
type Workdir struct {
	*files.FS
	lock  *os.File
	top   *os.Root // where it lies
	name  string   // there
	close sync.Once
}

// Close removes the tree.
func (w *Workdir) Close() {
	w.close.Do(func() {
		_ = w.FS.Close()
		_ = disk.RemoveAll(w.top, w.name)
		_ = disk.RemoveOpen(w.top, w.name+lockSuffix, w.lock)
		w.lock.Close()
	})
}

// Mkdir makes a directory and those above it.
func (w *Workdir) Mkdir(rel string) error {
	return w.WithRoot(func(root *os.Root) error { return root.MkdirAll(rel, 0o700) })
}

// Remove removes whatever is at rel, which need not exist; a link, not its target.
func (w *Workdir) Remove(rel string) error {
	return w.WithRoot(func(root *os.Root) error {
		if root.RemoveAll(rel) == nil {
			return nil
		}
		makeWritable(root, rel)
		return root.RemoveAll(rel)
	})
}

// Rename puts what is at from in the place of whatever is at to.
func (w *Workdir) Rename(from, to string) error {
	return w.WithRoot(func(root *os.Root) error {
		if err := root.Rename(from, to); err == nil {
			return nil
		}
		if err := w.Remove(to); err != nil {
			return err
		}
		return root.Rename(from, to)
	})
}

// Link makes a symbolic link at rel, in the place of whatever is there.
func (w *Workdir) Link(target, rel string) error {
	tmp := w.Temp(path.Dir(rel))
	err := w.WithRoot(func(root *os.Root) error { return root.Symlink(target, tmp) })
	if err != nil {
		return err
	}
	return w.Rename(tmp, rel)
}

// Temp is a name below dir that nothing bears.
func (w *Workdir) Temp(dir string) string {
	return path.Join(dir, fmt.Sprintf("%s%016x%s", disk.TempPrefix, rand.Uint64(), disk.TempSuffix))
}

// Create writes a new file of at most limit bytes below an existing directory
// and returns its size. More is a *TooLargeError.
func (w *Workdir) Create(rel string, mode fs.FileMode, from io.Reader, limit int64) (n int64, err error) {
	err = w.WithRoot(func(root *os.Root) error {
		file, err := root.OpenFile(rel, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
		if err != nil {
			return err
		}
		n, err = io.Copy(file, io.LimitReader(from, limit+1))
		if err == nil && n > limit {
			err = &sandbox.TooLargeError{Path: rel, Size: n, Limit: limit}
		}
		return errors.Join(err, file.Close())
	})
	return n, err
}

// A Stamp is one state of one entry of a tree, as far as the system tells it
// without reading the content.
type Stamp struct {
	Path         string // below the directory that was listed
	Mode         fs.FileMode
	Size         int64
	Mtime, Ctime int64 // nanoseconds; Ctime 0 where the system does not tell
	Inode        uint64
}

// Stamps lists all that is below rel, in no particular but always the same
// order for the same names; links are listed, not followed.
func (w *Workdir) Stamps(rel string) (list []Stamp, err error) {
	err = w.WithRoot(func(root *os.Root) error {
		list, err = stampsOf(root, rel, "", nil)
		return err
	})
	return list, err
}

func stampsOf(root *os.Root, dir, prefix string, list []Stamp) ([]Stamp, error) {
	file, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	infos, err := file.Readdir(-1)
	file.Close()
	if err != nil {
		return nil, err
	}
	slices.SortFunc(infos, func(a, b fs.FileInfo) int { return strings.Compare(a.Name(), b.Name()) })
	for _, info := range infos {
		e := Stamp{Path: prefix + info.Name(), Mode: info.Mode(), Size: info.Size(), Mtime: info.ModTime().UnixNano()}
		e.Inode, e.Ctime = disk.Identity(info)
		if info.IsDir() {
			e.Size = 0 // what a file system says of a directory's size means nothing
		}
		list = append(list, e)
		if info.IsDir() {
			if list, err = stampsOf(root, dir+"/"+info.Name(), e.Path+"/", list); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// Below says whether a place of the tree is dir or lies below it.
func Below(rel, dir string) bool { return rel == dir || strings.HasPrefix(rel, dir+"/") }
