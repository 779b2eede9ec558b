package disk

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strconv"
)

// removeAll removes what is at name in parent, a directory that commands cannot
// write, with all that it holds. Commands may have made trees of any depth and
// directories without permissions: it needs the same few descriptors and the same
// memory for all of them, and time by their number alone.
func RemoveAll(parent *os.Root, name string) error {
	err := parent.Remove(name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if info, statErr := parent.Lstat(name); statErr != nil || !info.IsDir() {
		return err
	}
	top, err := openToEmpty(parent, name)
	if err != nil {
		return err
	}
	defer top.Close()
	r := removal{top: top}
	for r.empty(top, "", 0) {
	}
	return parent.Remove(name)
}

// openToEmpty opens a directory after it was made writable for us.
func openToEmpty(parent *os.Root, name string) (*os.Root, error) {
	_ = parent.Chmod(name, 0o700) // one that is not ours may be writable all the same
	return parent.OpenRoot(name)
}

// maxNested is how many directories are open within each other. What lies deeper
// is moved to the top first.
const maxNested = 16

// A removal empties one directory.
type removal struct {
	top   *os.Root
	moved uint64
}

// empty removes what is in dir, which is at rel below the top, nested so deep; it
// reports whether anything changed.
func (r *removal) empty(dir *os.Root, rel string, nested int) (changed bool) {
	eachEntry(dir, func(e fs.DirEntry) {
		switch name := e.Name(); {
		case e.IsDir() && nested == maxNested:
			changed = r.lift(dir, rel+name) || changed
		case e.IsDir():
			if sub, err := openToEmpty(dir, name); err == nil {
				changed = r.empty(sub, rel+name+"/", nested+1) || changed
				sub.Close()
			}
			changed = dir.Remove(name) == nil || changed
		default:
			changed = dir.Remove(name) == nil || changed
		}
	})
	return changed
}

// lift moves the directory at rel, which is in dir, to the top, under a name that is
// free. To move a directory is to write it.
func (r *removal) lift(dir *os.Root, rel string) bool {
	_ = dir.Chmod(path.Base(rel), 0o700)
	for range tempTries {
		r.moved++
		err := r.top.Rename(rel, TempPrefix+strconv.FormatUint(r.moved, 36))
		if err == nil {
			return true
		}
		if !errors.Is(err, fs.ErrExist) {
			return false
		}
	}
	return false
}

// eachEntry calls do with the entries of a directory, which may remove them.
func eachEntry(root *os.Root, do func(fs.DirEntry)) {
	dir, err := OpenListing(root)
	if err != nil {
		return
	}
	defer dir.Close()
	for {
		entries, err := dir.ReadDir(256)
		for _, e := range entries {
			do(e)
		}
		if err != nil {
			return
		}
	}
}
