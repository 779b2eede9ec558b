//go:build amd64 || arm64

package namespaces

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"golang.org/x/sys/unix"
)

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
	guard := func() (err error) {
		if repositories, err = guardWorkspace(in); err != nil && !policy.Scarce(err) && !errors.Is(err, unix.ENOSPC) {
			err = &GuardError{err.Error()}
		}
		return err
	}
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
			if err := bindDevice(path); err != nil {
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

// bindDevice shows a device, whose mode, owner and times stay as they are: it is the
// machine's, and root's to change. What is read only can be written if it is a device, but
// in gVisor.
func bindDevice(path string) error {
	if err := bind(path, grant{from: path}); err != nil {
		return err
	}
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err == nil {
		return unix.Close(fd)
	}
	if err == unix.EROFS {
		return bind(path, grant{write: true, from: path})
	}
	return nil
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

// A GuardError says what keeps the workspace, as it is now, from being guarded. It tells
// nothing of the machine.
type GuardError struct{ Text string }

func (e *GuardError) Error() string { return e.Text }

// guardWorkspace hides what is the host's in the workspace, and keeps what git
// executes for its user as it is. It returns the repositories that it has found.
func guardWorkspace(in Isolation) (repositories []string, err error) {
	if !in.Guard {
		return nil, nil
	}
	if err := coverPerstack(in.Workspace); err != nil {
		return nil, err
	}
	if err := holdWorkspace(in); err != nil {
		return nil, err
	}
	return guardGit(in)
}

// holdWorkspace keeps commands from moving the workspace away where they may write what is
// around it.
func holdWorkspace(in Isolation) error {
	for dir := in.Workspace; dir != "/" && policy.Below(filepath.Dir(dir), in.Policy.Write); dir = filepath.Dir(dir) {
		if err := unix.Mount(dir, dir, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	return nil
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

// ResolvConf says whom programs ask for names.
const ResolvConf = "/etc/resolv.conf"

// layNameServers lays a text over that file, in the tree of the session.
func (v view) layNameServers(text string) error {
	if text == "" {
		return nil
	}
	const from = "/.resolv.conf"
	if err := os.WriteFile(from, []byte(text), 0o644); err != nil {
		return err
	}
	defer os.Remove(from)
	to, err := filepath.EvalSymlinks(ResolvConf)
	if err != nil { // this machine has none, and programs ask their own loopback
		if _, granted := v.above(ResolvConf); granted { // nothing is made in what is the machine's
			return nil
		}
		to = ResolvConf
		if err := emptyFile(to); err != nil {
			return err
		}
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("%s: %w", to, err)
	}
	return setMount(to, 0, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
}
