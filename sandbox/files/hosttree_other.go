//go:build !linux

package files

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// A hostTree follows links in the directories of a name here: commands are not
// confined on this system, so they gain nothing by a link that they put there.
type hostTree struct {
	fs.ReadLinkFS
	top string
}

func newHostTree(top string) fs.ReadLinkFS {
	return hostTree{os.DirFS(top).(fs.ReadLinkFS), top}
}

// openStraight knows no way of its own here.
func (st *state) openStraight(string) (fs.File, error) { return nil, nil }

func (t hostTree) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return os.OpenFile(filepath.Join(t.top, filepath.FromSlash(name)), os.O_RDONLY|syscall.O_NONBLOCK, 0)
}
