package quota

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/cgroup"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/usage"
)

// hostMeans finds out what keeps limits. How commands are confined is known already, or
// not asked for.
func (c *Rules) hostMeans() means {
	m := means{memory: Coarsely, processes: Coarsely, cpus: Unkept,
		memoryBy: fmt.Sprintf("no process gets more, and a look every %v ends the session's commands when they have %d %% more together", lookPause, memorySlack),
	}
	m.processesBy = fmt.Sprintf("a look every %v ends the session's commands when they have more", lookPause)
	tree, err := cgroup.Open()
	if err != nil {
		m.cpusBy = err.Error()
	} else {
		group := "the session's control group"
		if c.Off {
			group += ", which commands that are not confined can leave"
		}
		if tree.Memory {
			m.memory, m.memoryBy = Exactly, group
		}
		if tree.Processes {
			m.processes, m.processesBy = Exactly, group
		}
		if m.cpusBy = "the control group of this program does not share out processor time"; tree.CPU {
			m.cpus, m.cpusBy = Exactly, group
		}
	}
	if !c.Namespaces() && !proc.Stoppable() {
		m.late()
	}
	if m.processes != Exactly && c.countedInNamespace() {
		m.processes, m.processesBy = Exactly, "RLIMIT_NPROC in the session's user namespace"
	}
	return m
}

// late is for where commands run before they come into their control group.
func (m *means) late() {
	for how, by := range map[*Keeping]*string{&m.memory: &m.memoryBy, &m.processes: &m.processesBy, &m.cpus: &m.cpusBy} {
		if *how == Exactly {
			*how, *by = Coarsely, *by+", which commands come into a moment after they begin: the system forbids to stop them (kernel.yama.ptrace_scope)"
		}
	}
}

// countedInNamespace reports whether the kernel counts the processes of a session by
// its user namespace: from Linux 5.14 on, and for everybody but root.
func (c *Rules) countedInNamespace() bool {
	return c.Namespaces() && os.Geteuid() != 0 && kernelSince(5, 14)
}

// kernelSince compares the version of the running kernel.
func kernelSince(major, minor int) bool {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return false
	}
	var has [2]int
	if n, _ := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &has[0], &has[1]); n != 2 {
		return false
	}
	return has[0] > major || has[0] == major && has[1] >= minor
}

// A Ration is what the commands of one session may use, from the first of them on.
type Ration struct {
	mu       sync.Mutex
	how      means
	made     bool
	leaf     *cgroup.Leaf // nil for none
	counter  counter      // the leaf, or the group of the container around the session; nil for none
	counts   bool         // the counter counts processes
	mark     proc.Mark    // of the session, where no namespace shows its processes
	bounds   proc.Bounds
	watching bool
	verdict  string    // why a look at the session has ended its commands
	ended    time.Time // when that was
}

// A counter is a control group that holds a session's commands and nothing else's.
type counter interface {
	Events() cgroup.Events
	Processes() int
}

// An Account is what was counted when a command began.
type Account struct {
	events cgroup.Events
	killed int          // processes that the machine has ended for want of memory
	short  *atomic.Bool // of memory, so it could write to no file
}

// besides are the processes in a session's user namespace that are no command's: the
// first one, and the one that watches over a command. Where several commands run at
// once, each of the others takes one more from what they may have.
const besides = 2

// Begin is what the next command is put under, and what is counted before.
func (r *Ration) Begin(c *Rules, s Session) (proc.Bounds, Account, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.made {
		if err := r.make(c); err != nil {
			return proc.Bounds{}, Account{}, err
		}
		r.made = true
	}
	q := c.Limits
	if s.OthersRun() && r.processes(c, s) >= c.mostProcesses() {
		return proc.Bounds{}, Account{}, &FullError{c.processesReached()}
	}
	if !r.watching && (q.MaxMemory > 0 && r.how.memory != Exactly || q.MaxProcesses > 0 && !r.counts) {
		r.watching = true
		go r.watch(c, s)
	}
	a := Account{killed: usage.MachineKills.Read(), short: new(atomic.Bool)}
	if r.counter != nil {
		a.events = r.counter.Events()
	}
	bounds := r.bounds
	if !c.Namespaces() && !c.Inside && c.Reserve.Needed() {
		bounds.Late = func() proc.Bounds {
			if !c.Reserve.Short() {
				return proc.Bounds{}
			}
			a.short.Store(true)
			return usage.NoFiles
		}
	}
	return bounds, a, nil
}

// processes is how many the session has: what joins them is refused nothing, but for
// what it starts itself.
func (r *Ration) processes(c *Rules, s Session) int {
	switch trees, _ := s.Trees(); {
	case r.counts:
		return r.counter.Processes()
	case c.MaxProcesses > 0 && len(trees) > 0:
		return r.usage(s).Tasks
	}
	return 0
}

// make decides by what means the limits are kept.
func (r *Ration) make(c *Rules) error {
	if err := c.Held(); err != nil {
		return err
	}
	r.how = c.means()
	if c.Inside {
		r.counter, r.counts = cgroup.Around(), true
		return nil
	}
	q := c.Limits
	if tree, err := cgroup.Open(); err == nil {
		if r.leaf, err = tree.NewLeaf(cgroup.Limits{Memory: q.MaxMemory, Processes: c.mostProcesses(), CPUs: q.MaxCPUs}); err != nil {
			return err
		}
		r.counter, r.counts, r.bounds.Group = r.leaf, tree.Processes, r.leaf.Procs
	}
	limits := map[int]unix.Rlimit{}
	if q.MaxMemory > 0 && r.how.memory != Exactly {
		limits[unix.RLIMIT_DATA] = unix.Rlimit{Cur: uint64(q.MaxMemory), Max: uint64(q.MaxMemory)}
	}
	if !r.counts && c.countedInNamespace() {
		most := uint64(c.mostProcesses() + besides)
		limits[unix.RLIMIT_NPROC] = unix.Rlimit{Cur: most, Max: most}
	}
	r.bounds.Limits = limits
	if q.MaxMemory > 0 && r.how.memory != Exactly || q.MaxProcesses > 0 && !r.counts || limits[unix.RLIMIT_NPROC].Cur > 0 {
		r.mark = proc.SessionMark()
		r.bounds = r.bounds.With(r.mark.Bounds())
	}
	return nil
}

// Close ends what is in the session's control group, and removes it.
func (r *Ration) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leaf != nil {
		_ = r.leaf.Close() // what is left is removed by the next server
		r.leaf = nil
	}
}
