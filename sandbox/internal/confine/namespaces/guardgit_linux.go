//go:build amd64 || arm64

package namespaces

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"golang.org/x/sys/unix"
)

// What decides in a git directory which programs git runs. The directories and
// files are made where they are missing, for what does not exist cannot be kept:
// empty they mean nothing to git, nor does a commondir that leads to itself. The
// locks are made by [holdLocks]; without them git replaces its settings by other
// files, and with the old file goes what covers it.
var (
	gitSettings = []string{"gitdir", "branches", "description", "remotes", "config.lock", "config.worktree.lock"}
	gitDirs     = []string{"hooks", "info", "modules"}
	gitFiles    = map[string]string{"config": "", "config.worktree": "", "commondir": ".\n"}
	gitOwnTree  = "worktrees"
)

// maxGuardWalk bounds how many entries of a workspace are looked at for the
// repositories in it. A variable for tests.
var maxGuardWalk = 1_000_000

// guardGit makes the settings and hooks of the repositories in a directory read
// only. A mount point cannot be moved away; that is why each git directory is one too.
func guardGit(top string) error {
	level, seen := []string{top}, 0
	for len(level) > 0 {
		var deeper []string
		for _, dir := range level {
			entries, err := os.ReadDir(dir)
			if err != nil {
				if err := guardUnlisted(dir, top, err); err != nil {
					return err
				}
				continue
			}
			if seen += len(entries); seen > maxGuardWalk {
				return fmt.Errorf("the workspace holds more than %d files, too many to guard the repositories among them: serve a part of it, or without --sandbox isolate", maxGuardWalk)
			}
			named := filepath.Base(dir) == ".git"
			if named || isGitDir(entries) {
				if err := guardRepository(dir); err != nil {
					return fmt.Errorf("%s: %w", dir, err)
				}
			}
			if named {
				continue // what only looks like one may hold others
			}
			for _, entry := range entries {
				path := filepath.Join(dir, entry.Name())
				switch {
				case entry.IsDir():
					deeper = append(deeper, path)
				case entry.Name() == ".git":
					if err := guardPointer(path, entry); err != nil {
						return fmt.Errorf("%s: %w", path, err)
					}
				}
			}
		}
		level = deeper
	}
	return nil
}

// guardUnlisted makes read only what cannot be listed: commands can own it, and change its
// mode, or come to what lies there by a shorter way.
func guardUnlisted(dir, top string, why error) error {
	switch {
	case policy.Scarce(why):
		return fmt.Errorf("%s: %w", dir, why)
	case !errors.Is(why, fs.ErrPermission) && !errors.Is(why, unix.ENAMETOOLONG):
		return nil // gone, or of a file system that does not answer anybody
	}
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrPermission) && unix.Access(filepath.Dir(dir), unix.X_OK) == nil {
		return nil // a file system that lets nobody but its own user in
	}
	for at := dir; at != top; at = filepath.Dir(at) { // up to where a path leads
		if readOnly(at) == nil {
			return nil
		}
	}
	return fmt.Errorf("the repositories below %s cannot be guarded; let its owner list it, or remove it: %w", dir, why)
}

// isGitDir reports whether a directory is what git takes for a repository, or was when it
// was guarded before: commands can move git's data away, but not what was read only then.
func isGitDir(entries []fs.DirEntry) bool {
	there := map[string]bool{}
	for _, entry := range entries {
		there[entry.Name()] = true
	}
	guarded := true
	for _, name := range slices.AppendSeq(slices.Clone(gitDirs), maps.Keys(gitFiles)) {
		guarded = guarded && there[name]
	}
	return guarded || there["HEAD"] && there["objects"] && there["refs"]
}

// guardPointer guards a .git that names the directory. The directory itself is
// found where it lies.
func guardPointer(git string, entry fs.DirEntry) error {
	if entry.Type().IsRegular() {
		return readOnly(git)
	}
	if entry.Type()&fs.ModeSymlink == 0 {
		return nil
	}
	if err := holdLink(git); err != nil {
		return fmt.Errorf("a symbolic link cannot be guarded here; let .git be a directory, or a file that holds \"gitdir: \" and the path: %w", err)
	}
	return nil
}

// holdLink mounts a symbolic link over itself, so that it cannot be moved.
func holdLink(path string) error {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.MoveMount(fd, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// guardRepository guards one git directory.
func guardRepository(git string) error {
	if err := unix.Mount(git, git, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	names := append(slices.Clone(gitSettings), gitDirs...)
	for _, name := range append(slices.Clone(gitDirs), gitOwnTree) {
		_ = os.Mkdir(filepath.Join(git, name), 0o777) // as git does; the umask counts
	}
	for name, text := range gitFiles {
		names = append(names, name)
		if f, err := os.OpenFile(filepath.Join(git, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666); err == nil {
			_, _ = f.WriteString(text)
			f.Close()
		}
	}
	for _, name := range names {
		if err := readOnly(filepath.Join(git, name)); err != nil {
			return err
		}
	}
	return guardWorktrees(filepath.Join(git, gitOwnTree))
}

// guardNamed guards what the settings of the workspace's repository name in it.
func guardNamed(top string) error {
	config, err := os.ReadFile(filepath.Join(top, ".git", "config"))
	if err != nil {
		return nil // there is none
	}
	for _, name := range policy.NamedByGit(string(config), top) {
		path, err := filepath.EvalSymlinks(filepath.Join(top, name))
		switch {
		case errors.Is(err, fs.ErrPermission): // commands could let themselves in
			return fmt.Errorf("%s, which git reads, cannot be guarded; let its owner reach it: %w", name, err)
		case err != nil || path == top || !policy.Below(path, []string{top}):
			continue
		}
		if err := errors.Join(holdWay(top, name, path), readOnly(path)); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// holdWay keeps commands from moving away what leads to a path below top: the directories
// that hold it, and the links in its name. Another could be put in their place.
func holdWay(top, name, path string) error {
	var above []string
	for dir := filepath.Dir(path); dir != top; dir = filepath.Dir(dir) {
		above = append(above, dir)
	}
	for _, dir := range slices.Backward(above) {
		if err := unix.Mount(dir, dir, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return err
		}
	}
	at := top
	for part := range strings.SplitSeq(name, "/") {
		at = filepath.Join(at, part)
		if info, err := os.Lstat(at); err == nil && info.Mode()&fs.ModeSymlink != 0 && policy.Below(at, []string{top}) {
			if err := holdLink(at); err != nil {
				return err
			}
		}
	}
	return nil
}

// guardWorktrees lets commands write the data of linked worktrees, but neither
// what leads them to the repository nor the list of them.
func guardWorktrees(dir string) error {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		part := filepath.Join(dir, entry.Name())
		if !entry.IsDir() {
			continue
		}
		if err := unix.Mount(part, part, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return err
		}
		if err := guardPlace(part, grant{write: true, kind: policy.GitData}); err != nil {
			return err
		}
	}
	if err := unix.Mount(dir, dir, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	return setMount(dir, 0, unix.MOUNT_ATTR_RDONLY)
}

// guardPlace makes read only what of a writable place of git's leads elsewhere.
func guardPlace(path string, g grant) error {
	var names []string
	switch {
	case !g.write:
	case g.kind == policy.GitObjects:
		names = []string{"info"}
		_ = os.Mkdir(filepath.Join(path, "info"), 0o777) // git makes it, too
	case g.kind == policy.GitData:
		names = []string{"commondir", "gitdir", "config.worktree", "modules"} // of a linked worktree
	}
	for _, name := range names {
		if err := readOnly(filepath.Join(path, name)); err != nil {
			return err
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
