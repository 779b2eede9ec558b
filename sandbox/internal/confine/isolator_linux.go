//go:build amd64 || arm64

package confine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"github.com/perstack-ai/perstack-base/sandbox/internal/network"
)

// Isolation is what an Isolator is made from.
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

	Sockets []string // paths of sockets of the machine; set by NewIsolator
	Gateway bool     // whether there is a Gate; set by NewIsolator
	Names   string   // what /etc/resolv.conf says then, "" for what it is; set by NewIsolator
}

// An Isolator holds the namespaces of one session: a user namespace, processes,
// a tree of mounts in which only what the policy names exists, a loopback network,
// and System V IPC. It is safe for concurrent use.
type Isolator struct {
	policy    policy.Policy
	kernel    features
	keeper    *keeper
	procs     procDir     // the processes in the namespaces
	terminals int         // the directory that shows its terminals
	memory    []int       // the file systems in memory that are its own
	files     unix.Rlimit // how many files commands may open
	status    func() Status
	locks     *gitLocks // nil for none
	way       *gateway  // nil for none

	still sync.Mutex // held while the session is made to stand still

	closing sync.Once
}

// NewIsolator makes the namespaces. It fails where the system does not permit that.
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
	if err := in.Policy.Short(); err != nil {
		return nil, err
	}
	if kernel.Landlock == 0 {
		in.Policy = in.Policy.WithoutGit()
	}
	in.Sockets = boundSockets()
	in.Gateway = in.Gate != nil
	if in.Gateway {
		if in.Policy.Network {
			return nil, errors.New("no namespaces: a gate is of no use where the network is open")
		}
		text, _ := os.ReadFile(resolvConf)
		in.Names = nameServers(string(text))
	}
	i := &Isolator{policy: in.Policy, kernel: kernel, procs: -1, terminals: -1, files: fileLimit()}
	i.status = sync.OnceValue(i.selfTest)
	if in.Guard {
		var err error
		if i.locks, err = holdLocks(in.Workspace); err != nil {
			return nil, err
		}
	}
	if err := i.furnish(in); err != nil {
		i.release()
		return nil, fmt.Errorf("no namespaces: %w", err)
	}
	if i.locks != nil {
		i.locks.remember()
	}
	return i, nil
}

// Fallen reports whether the guard of the workspace's repository does not cover it
// any more, or the first process of the namespaces has ended: nothing runs in them then.
func (i *Isolator) Fallen() bool { return i.locks.fallen() || i.keeper.ended() }

// furnish makes the namespaces and all that they hold.
func (i *Isolator) furnish(in Isolation) (err error) {
	spaces := uintptr(unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC)
	if !in.Policy.Network {
		spaces |= unix.CLONE_NEWNET
	}
	go reserveThreads()
	if i.keeper, err = newKeeper(spaces); err != nil {
		return err
	}
	made, err := i.keeper.stage(in)
	if err != nil {
		return err
	}
	if in.Gateway {
		if i.way, err = openGateway(in.Gate, made); err != nil {
			return fmt.Errorf("gateway: %w", err)
		}
	}
	root := fmt.Sprintf("/proc/%d/root", i.keeper.pid)
	if i.procs, err = openProcDir(root + "/proc"); err != nil {
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
	return i.keeper.seal(ruleset, buildIsolatedFilter())
}

// landlock builds the ruleset on top of the mounts below root. The mounts alone
// keep commands to the policy; the ruleset repeats it, so that neither is the
// only wall.
func (i *Isolator) landlock(root string) (ruleset int, err error) {
	attr := policyAttr(i.kernel.Landlock, true)
	attr.Scoped = 0
	if i.policy.Network && i.kernel.Landlock >= 6 { // abstract sockets are the network's
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	if ruleset, err = createRuleset(&attr); err != nil {
		return -1, err
	}
	grant := func(path string, rights uint64) {
		if err == nil {
			err = addRule(ruleset, filepath.Join(root, path), rights&attr.Handled_access_fs)
		}
	}
	grant("/", readRights)
	for _, path := range []string{"/tmp", "/dev/shm"} {
		rights := uint64(writeRights)
		if i.policy.GitBelow(path) { // rights in a directory count for all below it
			rights = gitRights
		}
		grant(path, rights)
	}
	if _, missing := os.Stat(root + queues); missing == nil {
		grant(queues, writeRights)
	}
	if err == nil {
		err = addPlaces(ruleset, i.policy.Places, attr.Handled_access_fs)
	}
	for _, path := range append([]string{terminals}, i.policy.Devices...) { // they are the session's own here
		grant(path, deviceRights)
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
	if i.keeper == nil {
		return
	}
	i.keeper.close()
	i.way.close()
	i.keeper.starting.Lock() // nobody uses the descriptors any more
	defer i.keeper.starting.Unlock()
	i.still.Lock()
	defer i.still.Unlock()
	i.procs.close()
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
