package files

import (
	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/internal/disk"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A Path is where a name leads. It is an answer, not a permission: every use of
// Rel is resolved by the kernel again, below the root, whatever changed in the
// meantime.
type Path struct {
	Rel    string      // slash-separated, below the root, links resolved; "." is the root
	Abs    string      // the same place as an absolute path of the system
	Exists bool        // something is there
	Type   fs.FileMode // its type bits (fs.ModeDir, fs.ModeSymlink, ... 0 = regular file)
}

// IsDir reports whether an existing directory is there.
func (p Path) IsDir() bool { return p.Exists && p.Type.IsDir() }

// maxPath is the longest name taken: the kernel's PATH_MAX on Linux.
const maxPath = 4095

// reservedName is the directory of the runtime, at the top of the workspace.
const reservedName = "perstack"

// reserved reports whether rel is the runtime's directory or below it. Case is
// ignored everywhere, because a disk may ignore it.
func reserved(rel string) bool {
	first, _, _ := strings.Cut(rel, "/")
	return strings.EqualFold(first, reservedName)
}

// clean maps a caller's name to a slash path below the root, as text: links are
// not looked at. Nothing on disk is touched for a relative name that stays
// inside, nor for an absolute one in a known spelling of the root.
func (f *FS) clean(st *state, name string) (string, error) {
	if detail := unusable(name); detail != "" {
		return "", &sandbox.PathError{Path: name, Detail: detail, Err: sandbox.ErrBadPath}
	}
	rel, ok := f.place(st, name)
	if !ok {
		return "", &sandbox.PathError{Path: name, Err: sandbox.ErrEscapes}
	}
	if rel = filepath.ToSlash(rel); reserved(rel) {
		return "", &sandbox.PathError{Path: name, Err: sandbox.ErrReserved}
	}
	return rel, nil
}

func unusable(name string) string {
	switch {
	case name == "":
		return "is empty"
	case strings.IndexByte(name, 0) >= 0:
		return "contains NUL"
	case len(name) > maxPath:
		return "is too long"
	}
	return ""
}

// place cleans name and finds it below the root.
func (f *FS) place(st *state, name string) (string, bool) {
	name = filepath.Clean(name)
	if os.IsPathSeparator(name[0]) && filepath.VolumeName(name) == "" {
		name = filepath.VolumeName(f.real) + name // on Windows \x is on the current drive
	}
	if filepath.IsAbs(name) {
		return f.below(st, name)
	}
	if filepath.IsLocal(name) {
		return name, !strings.HasPrefix(name, "~") || st.hasTilde(name)
	}
	// ../ws/a is a when the workspace is called ws.
	if rel, ok := f.below(st, filepath.Join(f.real, name)); ok {
		return rel, true
	}
	return f.below(st, filepath.Join(f.given, name))
}

// hasTilde decides for a name that begins with ~: a model that writes ~/x means
// somebody's home, unless the workspace really has an entry of that name.
func (st *state) hasTilde(name string) bool {
	if first, _, _ := strings.Cut(filepath.ToSlash(name), "/"); first != "~" {
		return true
	}
	_, err := st.root.Lstat("~")
	return err == nil
}

// below returns the part of a clean absolute path below the root. When neither
// spelling of the root fits as text, its leading directories are compared with
// the root itself: disks that ignore case, bind mounts, links to the workspace.
func (f *FS) below(st *state, abs string) (string, bool) {
	if rel, ok := f.spelled(abs); ok {
		return rel, true
	}
	for i := len(filepath.VolumeName(abs)) + 1; i <= len(abs); i++ {
		if i < len(abs) && !os.IsPathSeparator(abs[i]) {
			continue
		}
		info, err := os.Stat(abs[:i])
		if err != nil {
			return "", false
		}
		if os.SameFile(info, st.info) {
			return orDot(strings.Trim(abs[i:], string(filepath.Separator))), true
		}
	}
	return "", false
}

// spelled is below for the two known spellings of the root, as text alone.
func (f *FS) spelled(abs string) (string, bool) {
	for _, top := range [...]string{f.real, f.given} {
		if abs == top {
			return ".", true
		}
		if rest, ok := strings.CutPrefix(abs, disk.WithSeparator(top)); ok {
			return orDot(rest), true
		}
	}
	return "", false
}

func orDot(rel string) string {
	if rel == "" {
		return "."
	}
	return rel
}

// path makes the Path of a place whose links are resolved.
func (f *FS) path(rel string) Path {
	if rel == "." {
		return Path{Rel: rel, Abs: f.real}
	}
	return Path{Rel: rel, Abs: f.prefix + filepath.FromSlash(rel)}
}
