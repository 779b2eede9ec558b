//go:build amd64 || arm64

package namespaces

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/gateway"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/seccomp"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/selftest"
	"github.com/perstack-ai/perstack-base/sandbox/internal/network"
	"github.com/perstack-ai/perstack-base/sandbox/internal/pty"
)

// An Isolation is what an Isolator is made from.
type Isolation struct {
	Policy    policy.Policy
	Workspace string
	Guard     bool // the workspace's perstack is covered, and what git executes is read only

	// Files are laid over others: the path that commands see, and where its
	// content is, which no command can write.
	Files map[string]string

	// Gate is the way out of the session's network by TCP and questions for names,
	// nil for none. The policy's network is not open then.
	Gate *network.Gate `json:"-"`

	MaxMemory int64 // what each of its file systems in memory may hold at most; 0: what is usual

	Lacks Lacks // nothing, but for tests

	Begun *Begun `json:"-"` // namespaces for it, nil for new ones

	Gateway bool   // whether there is a Gate; set by New
	Names   string // what /etc/resolv.conf says then, "" for what it is; set by New

	User   policy.GitUser // whose git the guard is for; set by New, as is Around
	Around []Around
}

// Lacks are parts of the kernel to do without, so that a test can see what happens.
type Lacks struct {
	MountSetattr bool
	LockedMounts bool
	gateway.Lacks
}

// An Isolator holds the namespaces of one session: a user namespace, processes,
// a tree of mounts in which only what the policy names exists, a loopback network,
// and System V IPC. It is safe for concurrent use.
type Isolator struct {
	policy    policy.Policy
	kernel    kernel.Features
	Keeper    *Keeper
	Procs     kernel.ProcDir // the processes in the namespaces
	terminals int            // the directory that shows its terminals
	memory    []int          // the file systems in memory that are its own
	files     unix.Rlimit    // how many files commands may open
	status    func() selftest.Status
	locks     *gitLocks        // nil for none
	Way       *gateway.Gateway // nil for none

	Still sync.Mutex // held while the session is made to stand still

	closing sync.Once
}

// New makes the namespaces. It fails where the system does not permit that.
func New(in Isolation) (*Isolator, error) {
	return NewWith(in, kernel.Features{Landlock: kernel.LandlockABI()})
}

// NewWith is New with what the caller says of the kernel.
func NewWith(in Isolation, has kernel.Features) (*Isolator, error) {
	if err := kernel.PrepareProcess(); err != nil {
		return nil, err
	}
	if in.Policy.Places == nil {
		in.Policy = in.Policy.Pin()
		defer in.Policy.Close()
	}
	if err := in.Policy.Short(); err != nil {
		return nil, err
	}
	if has.Landlock == 0 {
		in.Policy = in.Policy.WithoutGit()
	}
	in.Gateway = in.Gate != nil
	if in.Gateway {
		if in.Policy.Network {
			return nil, errors.New("no namespaces: a gate is of no use where the network is open")
		}
		text, _ := os.ReadFile(ResolvConf)
		in.Names = gateway.NameServers(string(text))
	}
	i := &Isolator{policy: in.Policy, kernel: has, Procs: -1, terminals: -1, files: fileLimit()}
	i.status = sync.OnceValue(i.selfTest)
	if in.Guard {
		err := in.lookAround()
		if err != nil {
			return nil, err
		}
		if i.locks, err = holdLocks(in.Workspace); err != nil {
			return nil, err
		}
	}
	if err := i.furnish(in, lookForSockets(in.Policy)); err != nil {
		i.release()
		if guard := (*GuardError)(nil); errors.As(err, &guard) {
			return nil, err
		}
		return nil, fmt.Errorf("no namespaces: %w", err)
	}
	if i.locks != nil {
		i.locks.remember()
	}
	return i, nil
}

// Fallen reports whether the guard of the workspace's repository does not cover it
// any more, or the first process of the namespaces has ended: nothing runs in them then.
func (i *Isolator) Fallen() bool {
	return !i.locks.mend(mendTime) || i.locks.fallen() || i.Keeper.ended()
}

// mend puts back what a command has taken from repositories, and removes its links. Where
// others of the session make work faster than it is done, they are ended.
func (i *Isolator) mend() {
	if !i.locks.mend(mendTime) {
		_ = i.Keeper.signal(-1, unix.SIGKILL)
		i.locks.mend(endTime)
	}
}

// furnish makes the namespaces and all that they hold.
func (i *Isolator) furnish(in Isolation, sockets <-chan [][]byte) (err error) {
	if in.Begun == nil {
		in.Begun = Begin(in.Policy.Network)
	}
	var mounts *stage
	if i.Keeper, mounts, err = in.Begun.take(); err != nil {
		return err
	}
	made, repositories, err := mounts.fill(in, sockets)
	if err != nil {
		return err
	}
	if !in.Lacks.LockedMounts {
		if err := i.Keeper.lockMounts(); err != nil {
			return err
		}
	}
	if i.locks != nil {
		if err := i.locks.heads.keep(repositories, i.locks.since); err != nil {
			return err
		}
	}
	if in.Gateway {
		if i.Way, err = gateway.Open(in.Gate, made); err != nil {
			return fmt.Errorf("gateway: %w", err)
		}
	}
	root := fmt.Sprintf("/proc/%d/root", i.Keeper.PID)
	if i.Procs, err = kernel.OpenProcDir(root + "/proc"); err != nil {
		return err
	}
	if err := i.openTerminals(root); err != nil {
		return err
	}
	i.openMemory(root)
	ruleset := -1
	if i.kernel.Landlock > 0 {
		if ruleset, err = i.landlock(root); err != nil {
			return err
		}
		defer unix.Close(ruleset)
	}
	return i.Keeper.seal(ruleset, seccomp.BuildIsolated())
}

// landlock builds the ruleset on top of the mounts below root. The mounts alone
// keep commands to the policy; the ruleset repeats it, so that neither is the
// only wall.
func (i *Isolator) landlock(root string) (ruleset int, err error) {
	attr := kernel.PolicyAttr(i.kernel.Landlock, true)
	attr.Scoped = 0
	if i.policy.Network && i.kernel.Landlock >= 6 { // abstract sockets are the network's
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	if ruleset, err = kernel.CreateRuleset(&attr); err != nil {
		return -1, err
	}
	grant := func(path string, rights uint64) {
		if err == nil {
			err = kernel.AddRule(ruleset, filepath.Join(root, path), rights&attr.Handled_access_fs)
		}
	}
	grant("/", kernel.ReadRights)
	for _, path := range []string{"/tmp", "/dev/shm"} {
		rights := uint64(kernel.WriteRights)
		if i.policy.GitBelow(path) { // rights in a directory count for all below it
			rights = kernel.GitRights
		}
		grant(path, rights)
	}
	if _, missing := os.Stat(root + queues); missing == nil {
		grant(queues, kernel.WriteRights)
	}
	if err == nil {
		err = kernel.AddPlaces(ruleset, i.policy.Places, attr.Handled_access_fs)
	}
	for _, path := range append([]string{pty.Dir}, i.policy.Devices...) { // they are the session's own here
		grant(path, kernel.DeviceRights)
	}
	if err != nil {
		unix.Close(ruleset)
	}
	return ruleset, err
}

// Close kills every process of every command and gives the namespaces back.
// Start fails from now on.
func (i *Isolator) Close() error {
	i.closing.Do(i.release)
	return nil
}

func (i *Isolator) release() {
	defer i.locks.release() // when no command is left
	if i.Keeper == nil {
		return
	}
	i.Keeper.close()
	i.Way.Close()
	i.Keeper.Starting.Lock() // nobody uses the descriptors any more
	defer i.Keeper.Starting.Unlock()
	i.Still.Lock()
	defer i.Still.Unlock()
	i.Procs.Close()
	for _, fd := range i.memory {
		unix.Close(fd)
	}
	i.memory = nil
	if i.terminals >= 0 {
		unix.Close(i.terminals)
		i.terminals = -1
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
