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
	return l
}

func set[T comparable](field *T, def T) {
	var zero T
	if *field == zero {
		*field = def
	}
}
