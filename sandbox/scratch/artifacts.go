package scratch

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"github.com/perstack-ai/perstack-base/sandbox/internal/disk"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// Artifacts are files that commands made and somebody asked to keep: by name,
// each saving a new version, counted from 0. They belong to a workspace and
// outlive its servers; servers that save at the same time never take the same
// number.
type Artifacts struct{ d *Workdirs }

// Artifacts returns the workspace's store.
func (d *Workdirs) Artifacts() *Artifacts { return &Artifacts{d} }

// ErrNoArtifact: no artifact has that name and version.
var ErrNoArtifact = errors.New("there is no such artifact")

const (
	artifacts = "artifacts"
	nameFile  = "name"
)

// slot is the directory of a name. Names are texts that no file system need know.
func (a *Artifacts) slot(name string, create bool) (*os.Root, error) {
	top, err := a.d.open()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(artifacts, fmt.Sprintf("%x", sha256.Sum256([]byte(name))))
	if create {
		if err := top.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		if err := top.WriteFile(filepath.Join(dir, nameFile), []byte(name), 0o600); err != nil {
			return nil, err
		}
	}
	root, err := top.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoArtifact
	}
	return root, err
}

// Save keeps all of from as the next version of name and returns its number.
func (a *Artifacts) Save(name string, from io.Reader) (version int, err error) {
	root, err := a.slot(name, true)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	tmp, err := disk.NewTemp(root, func(name string) (*os.File, error) {
		return root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, tmp.Discard()) }()
	if _, err := io.Copy(tmp.File, from); err != nil {
		return 0, err
	}
	// A link is made or not, and fails when the number is taken.
	for version = latest(root) + 1; ; version++ {
		err := root.Link(tmp.Name, strconv.Itoa(version))
		if !errors.Is(err, fs.ErrExist) {
			return version, err
		}
	}
}

// latest is the largest version, -1 without any.
func latest(root *os.Root) int {
	dir, err := root.Open(".")
	if err != nil {
		return -1
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	last := -1
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			last = max(last, n)
		}
	}
	return last
}

// Open opens a version of name, the latest when version is negative, and tells which.
func (a *Artifacts) Open(name string, version int) (*os.File, int, error) {
	root, err := a.slot(name, false)
	if err != nil {
		return nil, 0, err
	}
	defer root.Close()
	if version < 0 {
		version = latest(root)
	}
	file, err := disk.OpenRegular(root, strconv.Itoa(version), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNoArtifact
	}
	return file, version, err
}

// Names lists every name that has a version, sorted.
func (a *Artifacts) Names() []string {
	top, err := a.d.open()
	if err != nil {
		return nil
	}
	slots, _ := fs.ReadDir(top.FS(), artifacts)
	var names []string
	for _, slot := range slots {
		if name, err := top.ReadFile(filepath.Join(artifacts, slot.Name(), nameFile)); err == nil {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return names
}
