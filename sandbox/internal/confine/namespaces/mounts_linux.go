//go:build amd64 || arm64

package namespaces

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
	"golang.org/x/sys/unix"
)

// oldRoot is where the machine's own tree is found while the new one is made. A command of
// another session that guessed its name could leave a link in the workspace that leads there.
var oldRoot = "/.old-" + rand.Text()

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

// bindOver makes a path a mount point of its own. No link leads to it: a command of another
// session that puts one in the way would choose what is mounted.
func bindOver(path string) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	name := fmt.Sprintf("%s/proc/self/fd/%d", oldRoot, fd)
	return unix.Mount(name, name, "", unix.MS_BIND|unix.MS_REC, "")
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
	create := func() error { return unix.Mknod(path, unix.S_IFREG|0o644, 0) }
	if kernel.IsDir(fd) {
		create = func() error { return unix.Mkdir(path, 0o755) }
	}
	err := create()
	if err == unix.ENOENT {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		err = create()
	}
	if err == nil || err == unix.EEXIST {
		return nil
	}
	if _, missing := os.Lstat(path); missing == nil { // in what is only read
		return nil
	}
	return &os.PathError{Op: "make", Path: path, Err: err}
}

func emptyFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o644)
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

// lockMounts moves the keeper into a copy of its mounts that the kernel keeps together.
// When a mount namespace ends, its mounts come apart: in a directory that somebody else
// still has open, as commands of another session can, for descriptors are passed through
// sockets, what covered settings, sockets and the host's directory is gone. Mounts that
// came from another user namespace stay where they are, as long as anybody has them open.
// So a process in one of its own takes the copy, and ends when the keeper has joined it.
//
// The keeper joins its user namespace as well. Commands that remained in the outer one
// would have every capability over the inner one and its mounts, for their user made it;
// in the inner one they have those that they were left with.
//
// Where that cannot be done (gVisor) the mounts remain as they were made.
func (k *Keeper) lockMounts() error {
	k.Starting.Lock()
	defer k.Starting.Unlock()
	owner, err := k.ownMounts()
	if err != nil || owner == 0 {
		return err
	}
	dir, err := unix.Open(fmt.Sprintf("/proc/%d", owner), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	handle, err := unix.PidfdOpen(owner, 0)
	if err == unix.ENOSYS { // before Linux 5.3
		return proc.Signal(owner, unix.SIGKILL)
	}
	if err != nil {
		return err
	}
	defer unix.Close(handle)
	a := k.arena // what the owner waits in stays
	var steps []*kernel.Call
	for name, ids := range map[string]string{"uid_map": k.uids, "gid_map": k.gids} {
		const opened = givenErr // the first descriptor that is free
		steps = append(steps, a.Add(unix.SYS_OPENAT, givenIn, a.text(name), unix.O_WRONLY),
			a.Add(unix.SYS_WRITE, opened, a.text(ids), uintptr(len(ids))), a.Add(unix.SYS_CLOSE, opened))
	}
	join := a.Add(unix.SYS_SETNS, givenOut, unix.CLONE_NEWUSER|unix.CLONE_NEWNS)
	end := a.Add(unix.SYS_PIDFD_SEND_SIGNAL, givenOut, uintptr(unix.SIGKILL), 0, 0)
	steps = append(steps, join, end)
	chain(steps...)
	if err := k.run(steps[0], end, dir, handle); err != nil {
		return err
	}
	if cannot(join.Errno()) {
		return nil
	}
	for _, c := range steps {
		if c.Errno() != 0 {
			return notLocked(c)
		}
	}
	return nil
}

// ownMounts makes a process in a user namespace of its own, which has a copy of the
// mounts, and returns its id, 0 where that cannot be done. The ids of that namespace are
// not mapped yet. The caller holds Starting.
func (k *Keeper) ownMounts() (owner int, err error) {
	if err := k.reset(); err != nil {
		return 0, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("socketpair: %w", err)
	}
	defer unix.Close(pair[0])
	// Who sends is told by the number that it has here.
	err = unix.SetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1)
	a := k.arena
	// A kernel that does not know such a handle cannot join by one either.
	const flags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_PIDFD
	fork := a.Add(unix.SYS_CLONE, flags|uintptr(unix.SIGCHLD), 0, pointer(a, int64(0)))
	tell := a.Add(unix.SYS_WRITE, givenIn, a.text("."), 1)
	fork.OrElse = tell
	tell.Then(a.Add(unix.SYS_PPOLL)) // it waits for the signal
	if err == nil {
		err = k.run(fork, fork, pair[1])
	}
	unix.Close(pair[1])
	if err != nil {
		return 0, err
	}
	if cannot(fork.Errno()) {
		return 0, nil
	}
	if fork.Errno() != 0 {
		return 0, notLocked(fork)
	}
	return whoSent(pair[0])
}

// whoSent takes a message of a process in another namespace and returns its number here.
func whoSent(socket int) (pid int, err error) {
	control := make([]byte, unix.CmsgSpace(unix.SizeofUcred))
	n := 0
	err = kernel.IgnoringEINTR(func() error { _, n, _, _, err = unix.Recvmsg(socket, make([]byte, 1), control, 0); return err })
	if err != nil {
		return 0, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err == nil && len(messages) == 0 {
		err = kernel.ErrGone
	}
	if err != nil {
		return 0, err
	}
	sender, err := unix.ParseUnixCredentials(&messages[0])
	if err != nil {
		return 0, err
	}
	return int(sender.Pid), nil
}

// cannot reports whether an error is that of a kernel that lacks what was asked for.
func cannot(e unix.Errno) bool { return e == unix.ENOSYS || e == unix.EINVAL }

func notLocked(c *kernel.Call) error {
	return fmt.Errorf("keeping the mounts together: system call %d: %w", c.Nr, c.Errno())
}
