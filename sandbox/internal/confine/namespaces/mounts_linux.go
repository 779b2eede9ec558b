//go:build amd64 || arm64

package namespaces

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"golang.org/x/sys/unix"
)

// oldRoot is where the machine's own tree is found while the new one is made.
const oldRoot = "/.old"

// arrange makes a tree of mounts in which nothing exists but what the policy
// names, at the same paths, and makes it the root of the calling process, which
// must be alone in its namespaces. The sockets to cover are asked for when it comes to
// that. It returns the repositories that are guarded.
func arrange(in Isolation, sockets func() ([][]byte, error)) (repositories []string, err error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("private mounts: %w", err)
	}
	if err := enterEmptyRoot("/proc"); err != nil {
		return nil, err
	}
	v := view{grants: map[string]grant{}, links: map[string]string{}, memory: in.MaxMemory}
	v.collect(in.Policy, in.Files)
	guard := func() (err error) { repositories, err = guardWorkspace(in); return err }
	steps := []func() error{v.temporary, v.bindAll, v.devices(in.Policy.Devices), func() error { return v.shareMemory(in.Policy) }, func() error { return v.coverSockets(sockets) }, v.lay(in.Files), v.link, mountProc,
		func() error { return v.layNameServers(in.Names) }, guard, leaveOldRoot}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return repositories, nil
}

// enterEmptyRoot mounts an empty file system on any directory and moves into it,
// which leaves the directory as it was.
func enterEmptyRoot(anyDir string) error {
	if err := unix.Mount("root", anyDir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("an empty root: %w", err)
	}
	old := filepath.Join(anyDir, oldRoot)
	if err := os.Mkdir(old, 0o755); err != nil {
		return err
	}
	if err := unix.PivotRoot(anyDir, old); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	return os.Chdir("/")
}

func leaveOldRoot() error {
	if err := unix.Unmount(oldRoot, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leaving the old root: %w", err)
	}
	if err := os.Remove(oldRoot); err != nil {
		return err
	}
	return setMount("/", 0, unix.MOUNT_ATTR_RDONLY)
}

// A view is what shall be seen: real paths with what they show, and the links on
// the way to them.
type view struct {
	grants map[string]grant
	links  map[string]string
	memory int64 // see [Isolation]
}

// A grant is one path of the machine.
type grant struct {
	write bool
	kind  policy.Kind
	from  string        // where it is now
	id    policy.FileID // zero: whatever is there
}

// resolver is a directory of the machine's that holds programs' sockets beside
// the files they read.
const resolver = "/run/systemd/resolve"

func (v view) collect(p policy.Policy, instead map[string]string) {
	for _, place := range append(p.Dropped, p.Places...) {
		for link, target := range place.Links {
			if !policy.Below(link, p.Write) { // there it is what commands made of it
				v.links[link] = target
			}
		}
	}
	for _, place := range p.Places {
		switch {
		case place.Covered, instead[place.Path] != "":
		case place.Real == resolver:
			files, _ := filepath.Glob(oldRoot + resolver + "/*.conf") // the pattern is well formed
			for _, file := range files {
				v.grant(strings.TrimPrefix(file, oldRoot), grant{})
			}
		default:
			v.grant(place.Real, grant{place.Write, place.Kind, cmp.Or(place.From, place.Real), place.ID})
		}
	}
}

// grant adds a path. The root stands for all it holds; devices and processes
// have mounts of their own.
func (v view) grant(real string, g grant) {
	if policy.Below(real, []string{"/proc", "/dev/pts", "/dev/shm", oldRoot}) {
		return
	}
	if real != "/" && real != "/dev" {
		g.from = cmp.Or(g.from, real) // nothing stands for all of the machine
		g.write = g.write || v.grants[real].write
		v.grants[real] = g
		return
	}
	entries, _ := os.ReadDir(oldRoot + real)
	for _, entry := range entries {
		path := filepath.Join(real, entry.Name())
		if target, err := os.Readlink(oldRoot + path); err == nil {
			v.links[path] = target
			continue
		}
		v.grant(path, grant{write: g.write, from: path})
	}
}

// temporary gives the session a /tmp of its own, unless /tmp itself is granted.
func (v view) temporary() error {
	if _, granted := v.grants["/tmp"]; granted {
		return nil
	}
	return v.mountTmpfs("/tmp")
}

// bindAll shows the granted paths, outer ones first. A path below another one
// needs a mount of its own only to be writable where that is not.
func (v view) bindAll() error {
	paths := make([]string, 0, len(v.grants))
	for path := range v.grants {
		paths = append(paths, path)
	}
	sort.Strings(paths)
	for _, path := range paths {
		if write, granted := v.above(path); granted && (write || !v.grants[path].write) {
			continue
		}
		if err := bind(path, v.grants[path]); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := guardPlace(path, v.grants[path]); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// above tells whether a granted directory holds path, and whether one of those
// may be written.
func (v view) above(path string) (write, granted bool) {
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		g, ok := v.grants[dir]
		write, granted = write || g.write, granted || ok
	}
	return write, granted
}

// bind shows one path of the machine. What this user may not enter is left out,
// like what does not exist, or is another object than the policy means.
func bind(path string, g grant) error {
	fd, err := openObject(oldRoot+g.from, g.id)
	if policy.Scarce(err) {
		return err
	}
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	if err := mountPoint(path, fd); err != nil {
		return err
	}
	attr := uint64(unix.MOUNT_ATTR_NOSUID)
	if !g.write {
		attr |= unix.MOUNT_ATTR_RDONLY
	}
	if !policy.Below(path, []string{"/dev"}) {
		attr |= unix.MOUNT_ATTR_NODEV
	}
	err = bindTree(path, fd, attr)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTDIR) { // before Linux 5.12; gVisor, also for what is no directory
		err = bindByName(path, fd, attr)
	}
	return err
}

// bindTree shows what is open at a path, with attributes.
func bindTree(path string, fd int, attr uint64) error {
	tree, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return fmt.Errorf("open_tree: %w", err)
	}
	defer unix.Close(tree)
	if err := mountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attr}); err != nil {
		return fmt.Errorf("mount_setattr: %w", err)
	}
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("move_mount: %w", err)
	}
	return nil
}

// bindByName is bindTree by older calls. The name is that of the descriptor, so it
// leads to nothing else. That attributes come later harms nobody: no command runs yet.
func bindByName(path string, fd int, attr uint64) error {
	name := fmt.Sprintf("%s/proc/self/fd/%d", oldRoot, fd)
	if err := unix.Mount(name, path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("a bind: %w", err)
	}
	return remount(path, true, attr)
}

// openObject opens a path, through no link if it must be a certain object.
func openObject(path string, id policy.FileID) (int, error) {
	if id == (policy.FileID{}) {
		return unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || policy.IdOf(&st) != id {
		unix.Close(fd)
		return -1, unix.ESTALE
	}
	return fd, nil
}

// mountPoint makes an empty file or directory like the open one at the path,
// where there is none yet.
func mountPoint(path string, fd int) error {
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	if kernel.IsDir(fd) {
		return os.MkdirAll(path, 0o755)
	}
	return emptyFile(path)
}

func emptyFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o644)
}

// lay puts the session's own files over the machine's.
func (v view) lay(files map[string]string) func() error {
	return func() error {
		for path, from := range files {
			if err := bind(path, grant{from: from}); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		return nil
	}
}

// mountSetattr is a variable for a stage that does without it.
var mountSetattr = unix.MountSetattr

// setMount adds attributes to the mount at path, with AT_RECURSIVE also to those below.
func setMount(path string, flags uint, attr uint64) error {
	err := mountSetattr(unix.AT_FDCWD, path, flags, &unix.MountAttr{Attr_set: attr})
	if err == unix.ENOSYS { // before Linux 5.12, and in gVisor
		return remount(path, flags&unix.AT_RECURSIVE != 0, attr)
	}
	if err != nil {
		return fmt.Errorf("mount_setattr: %w", err)
	}
	return nil
}

// mountFlags are what mount(2) and mountinfo call the attributes of a mount; one
// that is left out when it is mounted again is taken away, or refused.
var mountFlags = map[string]struct{ attr, flag uint64 }{
	"ro":         {unix.MOUNT_ATTR_RDONLY, unix.MS_RDONLY},
	"nosuid":     {unix.MOUNT_ATTR_NOSUID, unix.MS_NOSUID},
	"nodev":      {unix.MOUNT_ATTR_NODEV, unix.MS_NODEV},
	"noexec":     {unix.MOUNT_ATTR_NOEXEC, unix.MS_NOEXEC},
	"noatime":    {unix.MOUNT_ATTR_NOATIME, unix.MS_NOATIME},
	"nodiratime": {unix.MOUNT_ATTR_NODIRATIME, unix.MS_NODIRATIME},
	"relatime":   {0, unix.MS_RELATIME},
}

// remount is setMount by an older call, one mount at a time.
func remount(path string, recursive bool, attr uint64) error {
	table, err := mountTable()
	if err != nil {
		return err
	}
	for point, options := range table {
		if point != path && !(recursive && policy.Below(point, []string{path})) {
			continue
		}
		flags := uint64(unix.MS_REMOUNT | unix.MS_BIND)
		for name, known := range mountFlags {
			if attr&known.attr != 0 || slices.Contains(options, name) {
				flags |= known.flag
			}
		}
		if err := unix.Mount("", point, "", uintptr(flags), ""); err != nil {
			return fmt.Errorf("mounting %s again: %w", point, err)
		}
	}
	return nil
}

// mountTable lists the mount points that this process sees, with their options.
// Of those at the same point only the last counts.
func mountTable() (map[string][]string, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if errors.Is(err, os.ErrNotExist) { // it is not there yet
		text, err = os.ReadFile(oldRoot + "/proc/self/mountinfo")
	}
	if err != nil {
		return nil, err
	}
	table := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 5 {
			table[unescape(f[4])] = strings.Split(f[5], ",")
		}
	}
	return table, nil
}

// unescape reads blanks and the like, which the kernel writes in octal.
func unescape(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}

// mountTmpfs gives commands a file system in memory to write in.
func (v view) mountTmpfs(path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777,"+MemorySize(v.memory)); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// devices shows the policy's devices, with terminals and shared memory of the
// session's own.
func (v view) devices(devices []string) func() error {
	return func() error {
		for _, path := range devices {
			if path == "/dev/pts" || path == "/dev/ptmx" {
				continue
			}
			if _, err := os.Stat(oldRoot + path); err != nil {
				continue
			}
			if err := bind(path, grant{write: true, from: path}); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		for name, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0",
			"stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx"} {
			v.links["/dev/"+name] = target
		}
		if err := os.MkdirAll("/dev/pts", 0o755); err != nil {
			return err
		}
		err := unix.Mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
		if err != nil {
			return fmt.Errorf("terminals: %w", err)
		}
		return mountQueues()
	}
}

// link makes the links that lead to what is shown, where nothing shows them yet.
func (v view) link() error {
	for path, target := range v.links {
		if _, err := os.Lstat(path); err == nil {
			continue
		}
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.Symlink(target, path)
		}
		if err != nil && !errors.Is(err, os.ErrExist) && !errors.Is(err, unix.EROFS) {
			return err
		}
	}
	return nil
}

// mountProc shows processes: here those of the stage, which are gone soon; each
// command covers it with its own. The kernel permits that only where nothing
// hides a part of /proc.
func mountProc() error {
	if err := os.MkdirAll("/proc", 0o755); err != nil {
		return err
	}
	if err := unix.Mount("proc", "/proc", "proc", procFlags, ""); err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	return nil
}

// procFlags: read only, or root could set what the kernel does for all.
const procFlags = unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC

// guardWorkspace hides what is the host's in the workspace, and keeps what git
// executes for its user as it is. It returns the repositories that it has found.
func guardWorkspace(in Isolation) (repositories []string, err error) {
	if !in.Guard {
		return nil, nil
	}
	if err := coverPerstack(in.Workspace); err != nil {
		return nil, err
	}
	if repositories, err = guardGit(in.Workspace); err != nil {
		return nil, err
	}
	return repositories, guardNamed(in.Workspace)
}

// hostDir is the directory of the workspace that belongs to the Perstack runtime.
const hostDir = "perstack"

// coverPerstack makes perstack empty, in whichever case it is written.
func coverPerstack(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		var err error
		switch {
		case !strings.EqualFold(entry.Name(), hostDir):
		case entry.IsDir():
			err = unix.Mount("empty", path, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, "mode=755")
		case entry.Type().IsRegular():
			err = unix.Mount("/dev/null", path, "", unix.MS_BIND, "")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}
