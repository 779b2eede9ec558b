//go:build amd64 || arm64

package namespaces

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"golang.org/x/sys/unix"
)

// hold keeps commands from moving away what leads to a name below top, which another thing
// could be put in the place of: the directories on the way and the links. It returns where
// the name leads, "" for outside of top or to nothing.
func (g gitGuard) hold(name string) (path string, err error) {
	top := g.top
	rest, at, hops := strings.Split(name, "/"), top, 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		next := filepath.Join(at, part)
		if !policy.Below(next, []string{top}) { // it may come in again
			if hops++; hops > policy.MaxHops {
				return "", nil
			}
			name, below := g.enter(strings.Join(append([]string{next}, rest...), "/"))
			if !below {
				return "", nil
			}
			rest, at = strings.Split(name, "/"), top
			continue
		}
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if hops > 0 {
				return "", missingError(next)
			}
			return "", nil
		case errors.Is(err, fs.ErrPermission): // commands could let themselves in
			return "", fmt.Errorf("let the owner of %s reach it: %w", filepath.Dir(next), err)
		case err != nil:
			return "", err
		case info.Mode()&fs.ModeSymlink != 0:
			if hops++; hops > policy.MaxHops {
				return "", nil // it leads nowhere
			}
			to, err := os.Readlink(next)
			if err == nil {
				err = holdLink(next)
			}
			if err != nil {
				return "", fmt.Errorf("the symbolic link %s cannot be guarded here: %w", next, err)
			}
			if filepath.IsAbs(to) {
				at = "/"
			}
			rest = append(strings.Split(to, "/"), rest...)
			continue
		case info.IsDir() && len(rest) > 0 && next != top:
			if err := g.keep(next); err != nil {
				return "", err
			}
		}
		at = next
	}
	return at, nil
}

// A missingError is of a link that leads to a path below the top which does not exist.
type missingError string

func (path missingError) Error() string {
	return fmt.Sprintf("a symbolic link leads to %s, which does not exist, so commands could make it; make it, or remove the link", string(path))
}

// unlessMissing is err, nil for a missingError: what is made there is as new as any other
// repository that commands make.
func unlessMissing(err error) error {
	if missing := missingError(""); errors.As(err, &missing) {
		return nil
	}
	return err
}

// keep makes a directory a mount point, once.
func (g gitGuard) keep(dir string) error {
	if g.held[dir] {
		return nil
	}
	g.held[dir] = true
	return unix.Mount(dir, dir, "", unix.MS_BIND|unix.MS_REC, "")
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

// guardSetting makes read only what a name below the top leads to, and the programs that
// links in a directory of hooks lead to, and holds the way.
func (g gitGuard) guardSetting(name string) error {
	path, err := g.hold(name)
	if err != nil || path == "" || path == g.top {
		return g.unlessNew(name, err)
	}
	entries, _ := os.ReadDir(path) // of a directory; a file has none
	for _, entry := range entries {
		if entry.Type()&fs.ModeSymlink == 0 {
			continue
		}
		rel, err := filepath.Rel(g.top, filepath.Join(path, entry.Name()))
		if err != nil {
			return err
		}
		program, err := g.hold(rel)
		if err == nil && program != "" {
			g.noteTwins(program)
			err = readOnly(program)
		}
		if err := g.unlessNew(name, err); err != nil {
			return err
		}
	}
	g.noteTwins(path)
	return readOnly(path)
}

// noteTwins takes down the files that have other names, by which they could be written.
func (g gitGuard) noteTwins(path string) {
	_ = filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		var stat unix.Stat_t
		switch {
		case err != nil:
		case entry.IsDir() && entry.Name() == gitObjects: // a clone on the same disk shares them
			return fs.SkipDir
		case entry.Type().IsRegular() && unix.Lstat(path, &stat) == nil && stat.Nlink > 1:
			g.twins[policy.IdOf(&stat)] = true
		}
		return nil
	})
}

// guardTwins makes their other names in the workspace read only.
func (g gitGuard) guardTwins() error {
	if len(g.twins) == 0 {
		return nil
	}
	return filepath.WalkDir(g.top, func(path string, entry fs.DirEntry, err error) error {
		var stat unix.Stat_t
		if err == nil && entry.Type().IsRegular() && unix.Lstat(path, &stat) == nil && g.twins[policy.IdOf(&stat)] {
			return readOnly(path)
		}
		return nil // what cannot be listed is read only
	})
}

// unlessNew is err, but for a missingError outside of the workspace's own .git: commands
// could make such links, to have later commands refused.
func (g gitGuard) unlessNew(name string, err error) error {
	if strings.HasPrefix(filepath.Clean(name), ".git/") {
		return err
	}
	return unlessMissing(err)
}

// use takes down that a repository is used in a work tree, "" for none.
func (g gitGuard) use(tree, git string) { g.useTree(policy.GitTree{Dirs: []string{git}, Tree: tree}) }

func (g gitGuard) useTree(tree policy.GitTree) {
	if len(*g.trees) < maxHeads {
		*g.trees = append(*g.trees, tree)
	}
}

// guardNamed guards what the settings of repositories name. Those of the workspace may name
// anything in it, others only what is in their own tree: commands can make such ones.
func (g gitGuard) guardNamed() error {
	for _, tree := range *g.trees {
		own := tree.Tree == g.top
		names, whole := tree.Named(g.user, g.read)
		if own && !whole {
			return errTooManySettings
		}
		for _, named := range names {
			if err := g.guardName(named, tree, own); err != nil {
				return err
			}
		}
	}
	return nil
}

// errTooManySettings: what was not looked at could name anything.
var errTooManySettings = errors.New("settings of git include too many files to guard what they name; include fewer")

// guardName guards what settings name that are used in a tree, the workspace's own or another.
func (g gitGuard) guardName(named policy.GitName, tree policy.GitTree, own bool) error {
	git := append(slices.Clone(tree.Dirs), g.top)[0]
	name, below := g.enter(named.Path)
	clean := filepath.Join(g.top, name)
	if !below || !own && !policy.Below(clean, []string{git, cmp.Or(tree.Tree, git)}) || slices.Contains([]string{g.top, git, tree.Tree}, clean) {
		return nil
	}
	if named.Hooks && git != g.top && policy.Below(clean, []string{git}) {
		_ = os.MkdirAll(clean, 0o777) // where no hooks are git looks only when somebody pushes
	}
	if named.Make {
		_ = os.MkdirAll(filepath.Dir(clean), 0o777)
		if f, err := os.OpenFile(clean, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666); err == nil {
			f.Close()
		}
	}
	if err := g.guardSetting(name); err != nil && (own || policy.Scarce(err)) {
		return fmt.Errorf("%s, which git reads, cannot be guarded: %w", name, err)
	}
	return nil
}

// enter returns the name below the top by which a path of the machine comes into it.
func (g gitGuard) enter(path string) (name string, below bool) {
	return policy.EnterTree(path, g.top, readOldLink)
}

// openOld opens a path as the machine has it.
func openOld(path string, flags uint64) (fd int, err error) {
	root, err := unix.Open(oldRoot, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(root)
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT}
	for range maxTries {
		if fd, err = unix.Openat2(root, path, &how); err != unix.EAGAIN {
			break
		}
	}
	return fd, err
}

// maxTries is how often a path with ".." is followed while directories are renamed.
const maxTries = 100

// readOldLink returns where a link of the machine's leads.
func readOldLink(path string) (string, error) {
	fd, err := openOld(path, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	text := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", text)
	return string(text[:max(n, 0)]), err
}

// maxSettings is how much of a file of settings is looked at.
const maxSettings = 1 << 20

// read returns the content of a file of the machine, "" for none: of a named pipe, too, that
// a command left where settings name a file, and of devices, which may do something when
// they are opened.
func (g gitGuard) read(path string) string {
	at, err := openOld(path, unix.O_PATH)
	if err != nil {
		return ""
	}
	return readRegular(at)
}

// readSettings is the same, in the process that starts others.
func readSettings(path string) string {
	at, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	return readRegular(at)
}

// readRegular returns the content of a file that was found, and lets go of it.
func readRegular(at int) string {
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return ""
	}
	file, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", at))
	if err != nil {
		return ""
	}
	defer file.Close()
	text, _ := io.ReadAll(io.LimitReader(file, maxSettings))
	return string(text)
}
