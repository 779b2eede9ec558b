//go:build amd64 || arm64

package confine

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// Isolation is what an Isolator is made from.
type Isolation struct {
	Policy    Policy
	Workspace string // its perstack is covered, its .git/hooks and .git/config are read only

	// Files are laid over others: the path that commands see, and where its
	// content is, which no command can write.
	Files map[string]string
}

// An Isolator holds the namespaces of one session: a user namespace, a tree of
// mounts in which only what the policy names exists, a loopback network, and
// System V IPC. Each command gets a process namespace of its own inside of them.
// It is safe for concurrent use.
type Isolator struct {
	policy  Policy
	kernel  features
	spaces  []int // the namespaces' descriptors, in the order to enter them
	ruleset int   // Landlock's, on top; -1 without Landlock
	filter  []unix.SockFilter
	files   unix.Rlimit // how many files commands may open
	status  func() Status

	starting sync.RWMutex // held for reading while the descriptors are in use
	closed   bool         // guarded by starting

	mu    sync.Mutex
	cells map[*Cell]bool
}

// NewIsolator makes the namespaces. It fails where the system does not permit
// that, and in a program whose main does not begin with [Stage].
func NewIsolator(in Isolation) (*Isolator, error) {
	return newIsolator(in, features{Landlock: landlockABI()})
}

// newIsolator is NewIsolator with what the caller says of the kernel.
func newIsolator(in Isolation, kernel features) (*Isolator, error) {
	if err := prepareProcess(); err != nil {
		return nil, err
	}
	if in.Policy.Places == nil {
		in.Policy = in.Policy.Pin()
		defer in.Policy.Close()
	}
	i := &Isolator{policy: in.Policy, kernel: kernel, ruleset: -1, cells: map[*Cell]bool{}, files: fileLimit()}
	i.status = sync.OnceValue(i.selfTest)
	i.filter = buildIsolatedFilter()
	st, err := startStage(in)
	if err != nil {
		return nil, fmt.Errorf("no namespaces: %w", err)
	}
	if err := errors.Join(i.take(st.pid), st.end()); err != nil {
		i.release()
		return nil, fmt.Errorf("no namespaces: %w", err)
	}
	return i, nil
}

// take opens what the stage has made; the namespaces last as long as these
// descriptors. The user namespace comes first, for the right to enter the others.
func (i *Isolator) take(pid int) error {
	names := []string{"user", "ipc", "net", "mnt"}
	for _, name := range names {
		if name == "net" && i.policy.Network {
			continue
		}
		fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/%s", pid, name), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("the %s namespace: %w", name, err)
		}
		i.spaces = append(i.spaces, fd)
	}
	if i.kernel.Landlock == 0 {
		return nil
	}
	return i.landlock(fmt.Sprintf("/proc/%d/root", pid))
}

// landlock builds the ruleset on top of the mounts below root. The mounts alone
// keep commands to the policy; the ruleset repeats it, so that neither is the
// only wall.
func (i *Isolator) landlock(root string) (err error) {
	attr := policyAttr(i.kernel.Landlock, true)
	attr.Scoped = 0
	if i.policy.Network && i.kernel.Landlock >= 6 { // abstract sockets are the network's
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	if i.ruleset, err = createRuleset(&attr); err != nil {
		return err
	}
	grant := func(path string, rights uint64) {
		if err == nil {
			err = addRule(i.ruleset, filepath.Join(root, path), rights&attr.Handled_access_fs)
		}
	}
	grant("/", readRights)
	for _, path := range []string{"/tmp", "/dev/shm"} {
		grant(path, writeRights)
	}
	if err == nil {
		err = addPlaces(i.ruleset, i.policy.Places, attr.Handled_access_fs)
	}
	for _, path := range i.policy.Devices {
		grant(path, deviceRights)
	}
	return err
}

// Close kills every process of every command and gives the namespaces back.
// Start fails from now on.
func (i *Isolator) Close() error {
	i.starting.Lock()
	defer i.starting.Unlock()
	if i.closed {
		return nil
	}
	i.closed = true
	for _, c := range i.live() {
		_ = c.Kill()
	}
	i.release()
	return nil
}

// live lists the cells that have processes.
func (i *Isolator) live() []*Cell {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := make([]*Cell, 0, len(i.cells))
	for c := range i.cells {
		out = append(out, c)
	}
	return out
}

func (i *Isolator) remember(c *Cell) { i.mu.Lock(); i.cells[c] = true; i.mu.Unlock() }
func (i *Isolator) forget(c *Cell)   { i.mu.Lock(); delete(i.cells, c); i.mu.Unlock() }

func (i *Isolator) release() {
	for _, fd := range i.spaces {
		unix.Close(fd)
	}
	if i.ruleset >= 0 {
		unix.Close(i.ruleset)
	}
}

// fileLimit has the usual soft limit: Go raises its own, which commands that loop
// over all descriptors must not inherit.
func fileLimit() unix.Rlimit {
	limit := unix.Rlimit{Cur: 1024, Max: 1024}
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	limit.Cur = min(limit.Max, 1024)
	return limit
}
