package skillrepo

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perstack-ai/perstack-base/skillrepo/internal/signature"
)

// ErrDirectory: a file was wanted, a directory is there.
var ErrDirectory = errors.New("is a directory")

// Resource finds one file of the skill: by its relative path, or by an absolute
// one inside the skill directory. The error is, or wraps, ErrOutside (also when
// nothing is there), fs.ErrNotExist (also for what the skill leaves out of its
// files), ErrDirectory, ErrNotRegular, or the system's.
func (s *Skill) Resource(name string) (File, error) {
	rel, err := s.relative(name)
	if err == nil {
		err = s.inPlace()
	}
	if err != nil {
		return File{}, plainError(name, err)
	}
	real, info, err := s.tree.resolve(s.real, rel)
	switch {
	case real != "" && !within(s.real, real):
		err = ErrOutside
	case err != nil:
	case s.leavesOut(real):
		err = fs.ErrNotExist
	case info.IsDir():
		err = ErrDirectory
	case !info.Mode().IsRegular():
		err = ErrNotRegular
	}
	if err != nil {
		return File{}, plainError(name, err)
	}
	return File{Path: rel, Size: info.Size(), Mode: info.Mode(), real: real, sig: signature.Of(info)}, nil
}

// inPlace fails when the skill directory is no longer the one that was found: a
// link put in its place, or above it, would lead everything that follows elsewhere.
func (s *Skill) inPlace() error {
	info, err := fs.Lstat(s.tree.fsys, s.real)
	switch {
	case err != nil:
	case s.dirSig.Tells():
		if !s.dirSig.SameFile(info) {
			err = ErrOutside
		}
	default: // the system does not tell directories apart
		var real string
		if real, _, err = s.tree.resolve(".", s.real); err == nil && real != s.real {
			err = ErrOutside
		}
	}
	if err != nil {
		return plainError("the skill directory", err)
	}
	return nil
}

// relative makes a path relative to the skill directory; one that climbs is outside.
func (s *Skill) relative(name string) (string, error) {
	p := filepath.ToSlash(name)
	if slices.Contains(strings.Split(p, "/"), "..") {
		return "", ErrOutside
	}
	if path.IsAbs(p) || filepath.IsAbs(name) {
		for _, dir := range []string{s.Dir, s.RealDir} {
			if in, ok := strings.CutPrefix(path.Clean(p), strings.TrimSuffix(filepath.ToSlash(dir), "/")+"/"); ok {
				return in, nil
			}
		}
		return "", ErrOutside
	}
	p = path.Clean(p)
	if !fs.ValidPath(p) || strings.Contains(p, "\x00") {
		return "", fs.ErrNotExist
	}
	return p, nil
}

// leavesOut reports whether a link-free path lies where the skill's files are not.
func (s *Skill) leavesOut(real string) bool {
	rel := strings.TrimPrefix(strings.TrimPrefix(real, s.real), "/")
	dirs := strings.Split(rel, "/")
	last := len(dirs) - 1
	return dirs[last] == ".DS_Store" || slices.ContainsFunc(dirs[:last], func(d string) bool { return leftOut[d] })
}

// Open opens a file that Resource, Files or Manifest returned, without following links.
func (s *Skill) Open(f File) (fs.File, error) {
	file, _, err := s.tree.openFile(f.real)
	return file, err
}

// ReadFile reads such a file whole; one of more than limit bytes is an error.
func (s *Skill) ReadFile(f File, limit int64) ([]byte, error) {
	b, err := readPath(s.tree, f.real, limit)
	if err != nil {
		return nil, plainError(f.Path, err)
	}
	return b, nil
}
