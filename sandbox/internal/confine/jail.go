package confine

import (
	"os"
	"syscall"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/hints"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/selftest"
	"github.com/perstack-ai/perstack-base/sandbox/internal/network"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
	"github.com/perstack-ai/perstack-base/sandbox/internal/pty"
)

// A Jail is a mechanism of confinement made ready for the commands of one session. It is
// safe for concurrent use.
type Jail interface {
	// Status tries out what the mechanism promises, once.
	Status() Status

	// SelfTest is Status as an error: nil when commands are confined.
	SelfTest() error

	// Fallen reports whether what it guards in the workspace is not covered any more. Then
	// no command may be started here.
	Fallen() bool

	// OpenTerminal makes a terminal that the session may use.
	OpenTerminal() (*pty.Pair, error)

	// Start runs a program. An error is the system's reason why it could not be executed, or
	// says which step before that failed.
	Start(Program) (Running, error)

	// Space is the session's own part of the machine, nil where its commands are among the
	// processes of the machine and see what may not be reached.
	Space() Space

	// Close kills every process of every command and gives back what New took. Start fails
	// from now on.
	Close() error
}

// A Space is what only one session's commands live in: processes and file systems in memory.
type Space interface {
	// Processes are where the processes are shown, and the ids there of those of commands.
	Processes() (dir string, pids []int)

	// LookAtMemory has f look at the file systems in memory, which are not closed meanwhile.
	LookAtMemory(f func(fd int))

	// KillAll kills every process of every command at once.
	KillAll()
}

// A Program is what a Jail starts. All paths are those of the host; the program sees the
// same ones.
type Program struct {
	Path  string // absolute
	Argv  []string
	Env   []string
	Dir   string
	Files [3]*os.File // stdin, stdout, stderr

	Terminal bool // stdin becomes the controlling terminal of a session of the program's own

	Cancel <-chan struct{} // closed: a start that takes long is given up

	Bounds proc.Bounds // what it is put under

	// Begin starts it instead, from the calling thread, as a child of this process, and
	// returns its id. A mechanism that has children inherit what confines them calls it;
	// others start the program themselves. It should do no more than that: it runs as
	// confined as the program will be.
	Begin func() (pid int, err error)
}

// A Running is one command with its descendants, however detached: none of them can leave it.
type Running interface {
	// Result waits until the program has ended and returns how; others of the command may
	// go on. It is false at once where Begin started the program: then the caller is its
	// parent, who collects it.
	Result() (status syscall.WaitStatus, known bool)

	// Signal sends a signal to every process of the command.
	Signal(syscall.Signal) error

	// Kill kills every process and returns when the signals are out.
	Kill() error

	// Processes are where processes are shown, and those of the command, by their ids
	// there.
	Processes() (dir string, all []proc.Process)

	// Populated looks at the processes, where Alive waits to be told that none is left.
	Populated() bool

	// Alive reports whether a process is left.
	Alive() bool

	// Done is closed when none is left.
	Done() <-chan struct{}

	// Refusals are what the command was refused so far, most frequent first, as far as
	// anybody keeps a record.
	Refusals() []hints.Refusal
}

// An Isolation is what a Jail is made from. Landlock guards nothing and lays nothing.
type Isolation struct {
	Policy    policy.Policy
	Workspace string
	Guard     bool // the workspace's perstack is covered, and what git executes is read only

	// Files are laid over others: the path that commands see, and where its content is,
	// which no command can write.
	Files map[string]string

	// Gate is the session's way out of a network that the policy closes, nil for none. Its
	// owner closes it, after the Jail.
	Gate *network.Gate

	MaxMemory int64 // what each file system in memory may hold at most; 0: what is usual

	Begun *Begun // for it, see [Begin]; nil for nothing
}

// What a Jail says of itself.
type (
	Status = selftest.Status
	Check  = selftest.Check
	Tier   = selftest.Tier
)

// The tiers.
const (
	Threads    = selftest.Threads
	Namespaces = selftest.Namespaces
)
