//go:build !unix

package files

import (
	"errors"
	"io/fs"
	"os"
)

// A handle is a directory of its own root.
type handle struct{ root *os.Root }

func openHandle(st *state, rel string) (handle, error) {
	root, err := st.pin(rel)
	return handle{root}, err
}

func (h handle) close() error { return h.root.Close() }

func (h handle) list() ([]fs.DirEntry, error) {
	dir, err := h.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.ReadDir(-1)
}

func (h handle) openDir(name string) (handle, error) {
	if err := h.refuseLink(name); err != nil {
		return handle{}, err
	}
	root, err := h.root.OpenRoot(name)
	return handle{root}, err
}

// A content is an open file.
type content struct{ *os.File }

func (h handle) openFile(name string) (*DirFile, error) {
	if err := h.refuseLink(name); err != nil {
		return nil, err
	}
	file, err := h.root.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, err
	}
	return &DirFile{content{file}, info.Mode().Type(), info.ModTime()}, nil
}

var errIsLink = errors.New("is a link")

func (h handle) refuseLink(name string) error {
	info, err := h.root.Lstat(name)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return errIsLink
	}
	return err
}

func isLinkRefusal(err error) bool { return errors.Is(err, errIsLink) }
