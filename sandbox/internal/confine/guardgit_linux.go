//go:build amd64 || arm64

package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// What decides in a .git which programs git runs, whichever of it exists. Only
// these are made where they are missing: empty they mean nothing to git.
var (
	gitSettings = []string{"commondir", "gitdir", "modules", "worktrees", "branches", "description", "remotes"}
	gitDirs     = []string{"hooks", "info"}
	gitFiles    = []string{"config", "config.worktree"}
)

// maxGuardWalk bounds how many entries of a workspace are looked at for the
// repositories in it.
const maxGuardWalk = 50_000

// guardGit makes the settings and hooks of the repositories in a directory read
// only. A mount point cannot be moved away; that is why each .git is one too.
func guardGit(dir string) error {
	level, seen := []string{dir}, 0
	for len(level) > 0 && seen < maxGuardWalk {
		var deeper []string
		for _, dir := range level {
			entries, _ := os.ReadDir(dir) // what cannot be read cannot be changed
			seen += len(entries)
			for _, entry := range entries {
				path := filepath.Join(dir, entry.Name())
				if entry.Name() != ".git" {
					if entry.IsDir() {
						deeper = append(deeper, path)
					}
				} else if err := guardRepository(path, entry); err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
			}
		}
		level = deeper
	}
	return nil
}

// guardRepository guards one .git, which may be a file that names the directory.
func guardRepository(git string, entry fs.DirEntry) error {
	if !entry.IsDir() {
		if entry.Type().IsRegular() {
			return readOnly(git)
		}
		return nil
	}
	if err := unix.Mount(git, git, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	for _, name := range gitDirs {
		_ = os.Mkdir(filepath.Join(git, name), 0o755)
	}
	for _, name := range gitFiles {
		if f, err := os.OpenFile(filepath.Join(git, name), os.O_CREATE|os.O_EXCL, 0o644); err == nil {
			f.Close()
		}
	}
	for _, names := range [][]string{gitSettings, gitDirs, gitFiles} {
		for _, name := range names {
			if err := readOnly(filepath.Join(git, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// readOnly makes a file or directory a mount that cannot be written.
func readOnly(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		return nil
	}
	if err != nil {
		return err
	}
	if err := unix.Mount(path, path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	return setMount(path, unix.AT_RECURSIVE, unix.MOUNT_ATTR_RDONLY)
}
