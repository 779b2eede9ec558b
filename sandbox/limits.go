package sandbox

import "time"

// Limits are the bounds of the machine, one place for all of them. The zero
// value of a field means its default; see [DefaultLimits] for the reasons.
type Limits struct {
	OutputBytes    int           // text kept of a command's output, both streams together
	CommandTimeout time.Duration // a command that sets no timeout of its own
	MaxTimeout     time.Duration // the longest timeout that a call may ask for
	KillGrace      time.Duration // from SIGTERM to SIGKILL
	PipeGrace      time.Duration // how long the pipes of survivors are waited for
	EditBytes      int64         // largest file that is edited in memory
	LinkHops       int           // links followed while resolving one path
	Processes      int           // of a session's commands together, where the kernel counts them
	LeftCommands   int           // of a session that have ended and left processes running

	// Of commands that outlive the call which started them, for each session:
	RunningCommands int           // that run at once
	EndedCommands   int           // that are kept when they have ended
	EndedBytes      int           // of output that is kept of those together
	KeepEnded       time.Duration // how long those are kept; and who nobody asks for, where there are no sessions
	OutputFirst     int           // bytes kept of the beginning of one's output
	OutputLast      int           // and of its end
	InputBytes      int           // that wait to be read by one
}

// DefaultLimits are what Limits' zero fields mean.
var DefaultLimits = Limits{
	OutputBytes:    131072,                 // about 30,000 tokens: what a model can still use
	CommandTimeout: 55 * time.Second,       // MCP clients give up after 60 s
	MaxTimeout:     24 * time.Hour,         // longer is a service, not a command
	KillGrace:      2 * time.Second,        // a runtime kills the server 4 s after end of input
	PipeGrace:      200 * time.Millisecond, // output in flight arrives in microseconds
	EditBytes:      64 << 20,               // text files end far below; two copies fit in memory
	LinkHops:       40,                     // the kernel's own bound
	Processes:      4096,                   // parallel builds have hundreds; the server, and others, need the rest
	LeftCommands:   256,                    // the strays of a long day; each takes descriptors and a thread

	RunningCommands: 64,               // more than anybody keeps an eye on
	EndedCommands:   256,              // a day's work
	EndedBytes:      64 << 20,         // as much as those that run can have
	KeepEnded:       30 * time.Minute, // a model that has not asked by then has moved on
	OutputFirst:     64 << 10,         // how it began, which says most when a build fails
	OutputLast:      1 << 20,          // minutes of a chatty server
	InputBytes:      64 << 10,         // what a pipe holds; no person types more
}

// WithDefaults returns l with every zero field set to its default.
func (l Limits) WithDefaults() Limits {
	d := DefaultLimits
	set(&l.OutputBytes, d.OutputBytes)
	set(&l.CommandTimeout, d.CommandTimeout)
	set(&l.MaxTimeout, d.MaxTimeout)
	set(&l.KillGrace, d.KillGrace)
	set(&l.PipeGrace, d.PipeGrace)
	set(&l.EditBytes, d.EditBytes)
	set(&l.LinkHops, d.LinkHops)
	set(&l.Processes, d.Processes)
	set(&l.LeftCommands, d.LeftCommands)
	set(&l.RunningCommands, d.RunningCommands)
	set(&l.EndedCommands, d.EndedCommands)
	set(&l.EndedBytes, d.EndedBytes)
	set(&l.KeepEnded, d.KeepEnded)
	set(&l.OutputFirst, d.OutputFirst)
	set(&l.OutputLast, d.OutputLast)
	set(&l.InputBytes, d.InputBytes)
	return l
}

func set[T comparable](field *T, def T) {
	var zero T
	if *field == zero {
		*field = def
	}
}
