package files

import (
	"github.com/perstack-ai/perstack-base/sandbox"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Tree is the workspace for readers that resolve links themselves, such as a
// search for skills. Nothing outside is ever opened, nor the reserved directory.
// On Linux no file is opened through a link, so that one put in the place of a
// directory does not lead into the reserved one.
func (f *FS) Tree() fs.ReadLinkFS { return workspaceTree{f} }

type workspaceTree struct{ f *FS }

func (t workspaceTree) Open(name string) (fs.File, error) {
	return inTree(t.f, "open", name, func(st *state) (fs.File, error) {
		if file, err := st.openStraight(name); file != nil || err != nil {
			return file, err
		}
		// Without O_NONBLOCK a FIFO put in the place of a file would never open.
		return st.root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	})
}

func (t workspaceTree) Lstat(name string) (fs.FileInfo, error) {
	return inTree(t.f, "lstat", name, func(st *state) (fs.FileInfo, error) { return st.root.Lstat(filepath.FromSlash(name)) })
}

func (t workspaceTree) ReadLink(name string) (string, error) {
	return inTree(t.f, "readlink", name, func(st *state) (string, error) { return st.root.Readlink(filepath.FromSlash(name)) })
}

func inTree[T any](f *FS, op, name string, do func(*state) (T, error)) (T, error) {
	var none T
	if !fs.ValidPath(name) {
		return none, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	if reserved(name) {
		return none, &fs.PathError{Op: op, Path: name, Err: fs.ErrPermission}
	}
	return within(f, do)
}

// HostTree is the whole machine, for reading directories that the user named,
// and the place of dir in it. On Linux it follows no link at all, in no part of a
// name, so that a link put in the place of a directory while it reads leads
// nowhere: whoever reads resolves links and decides which of them to follow.
func HostTree(dir string) (tree fs.ReadLinkFS, path, abs string, err error) {
	if abs, err = filepath.Abs(dir); err != nil {
		return nil, "", "", err
	}
	top := filepath.VolumeName(abs) + string(filepath.Separator)
	path = filepath.ToSlash(strings.TrimPrefix(abs, top))
	return newHostTree(top), orDot(path), abs, nil
}

// HomeDir is the directory of the user who runs the server, "" when unknown.
func HomeDir() string {
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return ""
	}
	return home
}

// OpenBelow opens root, a directory or file that the user allowed to be read, for
// a path that lies in it. The name is the path below what was opened; a path that
// is not in root is ErrEscapes. The caller closes the FS.
func OpenBelow(root, path string) (files *FS, name string, err error) {
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, "", err
	}
	info, err := os.Stat(real)
	if err != nil {
		return nil, "", err
	}
	dir := real
	if !info.IsDir() {
		target, err := filepath.EvalSymlinks(path)
		if err != nil || target != real {
			return nil, "", &sandbox.PathError{Path: path, Err: sandbox.ErrEscapes}
		}
		dir, path = filepath.Dir(real), target
	}
	if files, err = Open(dir, sandbox.Limits{}); err != nil {
		return nil, "", err
	}
	if at, err := files.Resolve(path); err != nil {
		files.Close()
		return nil, "", err
	} else {
		return files, at.Abs, nil
	}
}
