package quota

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/tree"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/usage"
)

// Limits bound what the commands of one session may use together. A field that
// is zero asks for no bound.
type Limits struct {
	MaxMemory    int64   // bytes, shared memory and files in memory included
	MaxProcesses int     // processes and threads
	MaxCPUs      float64 // processors' worth of time: 0.5 is half of one
}

// The flags that set Limits, by which users are told of it.
const (
	MaxMemoryFlag    = "--max-memory"
	MaxProcessesFlag = "--max-processes"
	MaxCPUsFlag      = "--max-cpus"
)

// What Limits may hold: less is of no use to any program, more is a mistake.
const (
	MinMemory = 1 << 20
	MinCPUs   = 0.01
	MaxCPUs   = 1 << 16
)

// Check refuses what cannot be meant.
func (q Limits) Check() error {
	switch {
	case q.MaxMemory < 0 || q.MaxMemory > 0 && q.MaxMemory < MinMemory:
		return fmt.Errorf("the most memory that commands may use must be at least %s, not %d bytes", SizeText(MinMemory), q.MaxMemory)
	case q.MaxProcesses < 0 || q.MaxProcesses > math.MaxInt32:
		return fmt.Errorf("the number of processes that commands may have must be from 1 to %d, not %d", math.MaxInt32, q.MaxProcesses)
	case q.MaxCPUs < 0 || q.MaxCPUs > 0 && q.MaxCPUs < MinCPUs || q.MaxCPUs > MaxCPUs || math.IsNaN(q.MaxCPUs):
		return fmt.Errorf("the number of processors that commands may use must be from %v to %d, not %v", MinCPUs, int(MaxCPUs), q.MaxCPUs)
	}
	return nil
}

// sizeUnits are the powers of 1024 that sizes are spelled in.
const sizeUnits = "KMGT"

// SizeText spells a number of bytes as flags take it: 512M.
func SizeText(bytes int64) string {
	unit := 0
	for unit < len(sizeUnits) && bytes != 0 && bytes%1024 == 0 {
		bytes, unit = bytes/1024, unit+1
	}
	return strconv.FormatInt(bytes, 10) + sizeUnits[max(unit-1, 0):unit]
}

// ParseSize reads a number of bytes, or of the unit behind it: 512M, 2G, 1048576.
func ParseSize(text string) (int64, error) {
	digits := strings.TrimRight(text, sizeUnits+strings.ToLower(sizeUnits))
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || len(text)-len(digits) > 1 {
		return 0, errors.New("it is not a number of bytes, nor one with K, M, G or T behind it")
	}
	if len(text) > len(digits) {
		power := 10 * (1 + strings.Index(sizeUnits, strings.ToUpper(text[len(digits):])))
		if n > math.MaxInt64>>power || n < math.MinInt64>>power {
			return 0, errors.New("no machine has that many bytes")
		}
		n <<= power
	}
	return n, nil
}

// A Keeping says how well a limit is kept.
type Keeping string

// The keepings.
const (
	Exactly  Keeping = "exactly"    // the kernel counts all of the session together
	Coarsely Keeping = "coarsely"   // what is beyond it is noticed after a moment
	Unkept   Keeping = "not at all" // nothing here can do it
)

// A Kept is one limit of what the commands of a session use together.
type Kept struct {
	Flag    string  `json:"flag"`
	Value   string  `json:"value"` // "" when there is none
	Asked   bool    `json:"asked"` // by the flag; else it is there always
	Keeping Keeping `json:"keeping"`
	By      string  `json:"by"` // what keeps it, or why nothing does
}

// Rules are Limits and what there is to keep it.
type Rules struct {
	Limits
	Strict, Off bool        // the mode of the sandbox
	Default     int         // processes that a session has at most when nobody says how many
	ByEngine    bool        // an engine keeps them, for the container
	Inside      bool        // of a container
	Spare       int         // processes that the engine was told to let a container have besides
	Namespaces  func() bool // whether commands run in namespaces, as far as that is decided
	Reserve     usage.Reserve
}

// Kept tells which limits there are and what keeps them.
func (c *Rules) Kept() []Kept {
	q, how := c.Limits, c.means()
	memory := Kept{Flag: MaxMemoryFlag, Asked: q.MaxMemory > 0, Keeping: how.memory, By: how.memoryBy}
	if memory.Asked {
		memory.Value = SizeText(q.MaxMemory)
	}
	processes := Kept{Flag: MaxProcessesFlag, Asked: q.MaxProcesses > 0, Keeping: how.processes, By: how.processesBy}
	if processes.Asked || how.processes == Exactly {
		processes.Value = strconv.Itoa(c.mostProcesses())
	}
	cpus := Kept{Flag: MaxCPUsFlag, Asked: q.MaxCPUs > 0, Keeping: how.cpus, By: how.cpusBy}
	if cpus.Asked {
		cpus.Value = strconv.FormatFloat(q.MaxCPUs, 'g', -1, 64)
	}
	return []Kept{memory, processes, cpus}
}

// mostProcesses is how many a session may have.
func (c *Rules) mostProcesses() int {
	if n := c.MaxProcesses; n > 0 {
		return n
	}
	if most := proc.MostInGroup(); most > 0 && !c.ByEngine {
		return min(most, c.Default)
	}
	return c.Default
}

// A QuotaError: a limit was asked for that is not kept exactly here, and the mode is
// Strict, which promises nothing that is not so.
type NotKeptError struct{ Kept Kept }

func (e *NotKeptError) Error() string {
	return fmt.Sprintf("%s %s is kept %s here (%s), and --sandbox strict takes no less than exactly", e.Kept.Flag, e.Kept.Value, e.Kept.Keeping, e.Kept.By)
}

// Hint says what to do about it.
func (e *NotKeptError) Hint() string { return DelegateHint }

// DelegateHint says how limits come to be kept exactly.
const DelegateHint = "To have limits kept exactly, start the server in a control group of its own that it may divide: " +
	"systemd-run --user --scope -p Delegate=yes perstack-base ..., or in a service with Delegate=yes"

// A SessionFullError: the session has as many processes as it may, so no command is
// started in it.
type FullError struct{ said string }

func (e *FullError) Error() string  { return e.said }
func (*FullError) Code() fault.Code { return fault.Unavailable }

// Held returns a [NotKeptError] when the mode is strict and a limit that was asked for is
// not kept exactly. Without such limits it tries nothing.
func (c *Rules) Held() error {
	if !c.Strict || c.Limits == (Limits{}) {
		return nil
	}
	for _, k := range c.Kept() {
		if k.Asked && k.Keeping != Exactly {
			return &NotKeptError{k}
		}
	}
	return nil
}

// NotKept are the limits that were asked for and that nothing keeps, in any
// mechanism.
func (c *Rules) NotKept() (all []Kept) {
	if c.MaxCPUs == 0 {
		return nil
	}
	if how := c.means(); how.cpus == Unkept {
		all = append(all, Kept{Flag: MaxCPUsFlag, Value: strconv.FormatFloat(c.MaxCPUs, 'g', -1, 64), Asked: true, Keeping: Unkept, By: how.cpusBy})
	}
	return all
}

// means are what keeps limits here.
type means struct {
	memory, processes, cpus       Keeping
	memoryBy, processesBy, cpusBy string
}

// means are those of this machine, or of the engine whose containers commands run in.
func (c *Rules) means() means {
	if !c.ByEngine {
		return c.hostMeans()
	}
	const by = "the engine, for the container"
	return means{Exactly, Exactly, Exactly, by, by + fmt.Sprintf(", which may have %d more for what runs the commands", c.Spare), by}
}

// A Session is whose commands are bounded.
type Session interface {
	// Trees are those of which something may run; any counts those that are being started,
	// too.
	Trees() (all []tree.Tree, any bool)

	// OthersRun reports whether a command runs besides the one that is about to.
	OthersRun() bool

	// Spaces are what its commands live in; see [confine.Jail].
	Spaces() []confine.Space

	// Confined reports whether its commands are.
	Confined() bool

	// Mark is the TMPDIR by which its processes are known.
	Mark() string
}

// An Ended says what became of a command.
type Ended struct {
	Before         Account
	Began          time.Time
	Tree           tree.Tree
	Killed         bool // and not by this server
	Failed         bool
	Stdout, Stderr func() string // the beginning and the end of what it printed
}
