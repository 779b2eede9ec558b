//go:build amd64 || arm64

package namespaces

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"golang.org/x/sys/unix"
)

// What decides in a git directory which programs git runs. The directories and
// files are made where they are missing, for what does not exist cannot be kept:
// empty they mean nothing to git, nor does a commondir that leads to itself. The
// locks are made by [holdLocks]; without them git replaces its settings by other
// files, and with the old file goes what covers it.
var (
	gitSettings = []string{"gitdir", "description", "config.lock", "config.worktree.lock"}
	gitDirs     = []string{"hooks", "info", "modules"}
	gitRemotes  = []string{"remotes", "branches"} // where git pushes to what no other settings name
	gitFiles    = map[string]string{"config": "", "config.worktree": "", "commondir": ".\n"}
	gitOwnTree  = "worktrees"

	// Without these a directory is no repository: they stay where they are.
	gitData = []string{"objects", "refs"}
)

// maxGuardWalk bounds how many entries of a workspace are looked at for the
// repositories in it. A variable for tests.
var maxGuardWalk = 1_000_000

// A gitGuard keeps git's settings below a directory as they are.
type gitGuard struct {
	top  string
	held map[string]bool // the directories that are mount points of its own, which cannot be moved

	twins map[policy.FileID]bool // what was made read only and has other names

	user  policy.GitUser
	trees *[]policy.GitTree // the repositories as they are used, the outer ones first
}

// An Around is what decides what git runs in a workspace and is found outside of it. Not
// every path is text.
type Around struct {
	Path        []byte
	Hooks, Make bool
}

// guardGit makes the settings and hooks of the repositories in a directory read
// only, and what those name there. It returns where the repositories
// are, the outer ones first. A mount point cannot be moved away; that is why each git
// directory is one too.
func guardGit(in Isolation) (repositories []string, err error) {
	g := gitGuard{top: in.Workspace, held: map[string]bool{}, twins: map[policy.FileID]bool{}, user: in.User, trees: new([]policy.GitTree)}
	if repositories, err = g.guardAll(); err != nil {
		return nil, err
	}
	for _, a := range in.Around {
		if err := g.guardName(policy.GitName{Path: string(a.Path), Hooks: a.Hooks, Make: a.Make}, policy.GitTree{}, true); err != nil {
			return nil, err
		}
	}
	if err := g.guardNamed(); err != nil {
		return nil, err
	}
	return repositories, g.guardTwins()
}

// lookAround finds what lies outside of the workspace, where the machine can be seen.
func (in *Isolation) lookAround() error {
	in.User = policy.ThisUser()
	names, whole := in.User.Around(in.Workspace, readSettings)
	if !whole {
		return &GuardError{errTooManySettings.Error()}
	}
	for _, name := range names {
		in.Around = append(in.Around, Around{[]byte(name.Path), name.Hooks, name.Make})
	}
	return nil
}

// guardAll finds the repositories and guards each.
func (g gitGuard) guardAll() (repositories []string, err error) {
	level, seen := []string{g.top}, 0
	for len(level) > 0 {
		var deeper []string
		for _, dir := range level {
			entries, err := lookInto(dir)
			if err != nil {
				if err := guardUnlisted(dir, g.top, err); err != nil {
					return nil, err
				}
				continue
			}
			if seen += len(entries); seen > maxGuardWalk {
				return nil, fmt.Errorf("the workspace holds more than %d files, too many to guard the repositories among them: serve a part of it, or without --sandbox isolate", maxGuardWalk)
			}
			named := filepath.Base(dir) == ".git"
			if named || isGitDir(entries) {
				if err := g.guardRepository(dir); err != nil {
					return nil, fmt.Errorf("%s: %w", dir, err)
				}
				repositories = append(repositories, dir)
				tree := ""
				if named {
					tree = filepath.Dir(dir)
				}
				g.use(tree, dir)
			}
			if named {
				entries = slices.DeleteFunc(entries, ofGit) // what is not git's may hold others
			}
			for _, entry := range entries {
				path := filepath.Join(dir, entry.Name())
				switch {
				case entry.IsDir():
					deeper = append(deeper, path)
				case entry.Name() == ".git":
					if err := g.guardPointer(path, entry); err != nil {
						return nil, fmt.Errorf("%s: %w", path, err)
					}
				}
			}
		}
		level = deeper
	}
	return repositories, nil
}

// ofGit reports whether something in a .git is git's own, and no repository.
func ofGit(entry fs.DirEntry) bool {
	return slices.Contains(slices.Concat(gitData, gitDirs, gitStores, []string{gitOwnTree, "logs", "rr-cache"}), entry.Name())
}

// lookInto lists a directory in which names mean something, too.
func lookInto(dir string) ([]fs.DirEntry, error) {
	if err := unix.Access(dir, unix.R_OK|unix.X_OK); err != nil {
		return nil, err
	}
	return os.ReadDir(dir)
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

// isGitDir reports whether a directory is what git takes for a repository, or would once it
// has its HEAD again, or was when it was guarded before: commands can move git's data away,
// but not what was read only then.
func isGitDir(entries []fs.DirEntry) bool {
	there := map[string]bool{}
	for _, entry := range entries {
		there[entry.Name()] = true
	}
	guarded := true
	for _, name := range slices.AppendSeq(slices.Clone(gitDirs), maps.Keys(gitFiles)) {
		guarded = guarded && there[name]
	}
	return guarded || there["objects"] && there["refs"] && (there["HEAD"] || there["config"])
}

// guardPointer guards a .git that names the directory, and the way to that. The directory
// itself is found where it lies.
func (g gitGuard) guardPointer(git string, entry fs.DirEntry) error {
	name, err := filepath.Rel(g.top, git)
	if err != nil {
		return err
	}
	if entry.Type()&fs.ModeSymlink != 0 {
		to, err := g.hold(name)
		g.useTree(policy.TreeAt(cmp.Or(to, git), filepath.Dir(git), g.read)) // it may lead out
		return unlessMissing(err)
	}
	if !entry.Type().IsRegular() {
		return nil
	}
	if tree, ok := policy.PointedTree(filepath.Dir(git), g.read(git), g.read); ok {
		if name, below := g.enter(tree.Dirs[0]); below {
			if _, err := g.hold(name); unlessMissing(err) != nil {
				return err
			}
		}
		g.useTree(tree)
	}
	return readOnly(git)
}

// guardRepository guards one git directory.
func (g gitGuard) guardRepository(git string) error {
	if err := g.keep(git); err != nil {
		return err
	}
	names := slices.Concat(gitSettings, gitDirs, gitRemotes)
	for _, name := range slices.Concat(gitDirs, gitRemotes, []string{gitOwnTree}) {
		_ = os.Mkdir(filepath.Join(git, name), 0o777) // as git does; the umask counts
	}
	for name, text := range gitFiles {
		names = append(names, name)
		if f, err := os.OpenFile(filepath.Join(git, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666); err == nil {
			_, _ = f.WriteString(text)
			f.Close()
		}
	}
	below, err := filepath.Rel(g.top, git)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := g.guardSetting(filepath.Join(below, name)); err != nil {
			return err
		}
	}
	for _, name := range gitData {
		if err := g.guardData(filepath.Join(below, name)); err != nil {
			return err
		}
	}
	trees, err := g.hold(filepath.Join(below, gitOwnTree))
	if err != nil || trees == "" {
		return unlessMissing(err)
	}
	return guardWorktrees(trees)
}

// guardData keeps a directory where it is.
func (g gitGuard) guardData(name string) error {
	path, err := g.hold(name)
	if err != nil || path == "" {
		return unlessMissing(err)
	}
	if info, err := os.Lstat(path); err != nil || !info.IsDir() {
		return nil
	}
	return g.keep(path)
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
		makeOwnSettings(path)
	}
	for _, name := range names {
		if err := readOnly(filepath.Join(path, name)); err != nil {
			return err
		}
	}
	return nil
}

// makeOwnSettings makes the settings of a linked worktree that are missing, which mean
// nothing while they are empty: what does not exist cannot be kept.
func makeOwnSettings(part string) {
	if _, err := os.Lstat(filepath.Join(part, "commondir")); err != nil {
		return // other data of git's
	}
	_ = os.Mkdir(filepath.Join(part, "modules"), 0o777)
	if f, err := os.OpenFile(filepath.Join(part, "config.worktree"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666); err == nil {
		f.Close()
	}
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
