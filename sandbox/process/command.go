package process

import (
	"fmt"
	"strings"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/sandbox/process/capture"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/environ"
	"github.com/perstack-ai/perstack-base/sandbox/trace"
)

// Why a command was not started. All but ErrEnding come in a *StartError.
var (
	// ErrNoProgram: no such program, or the interpreter that it names is missing.
	ErrNoProgram = environ.ErrNoProgram
	// ErrNotExecutable: the program is a directory or may not be executed.
	ErrNotExecutable = environ.ErrNotExecutable
	// ErrBadFormat: the system does not know how to run such a file.
	ErrBadFormat = fault.New(fault.UnsupportedType, "is not in a format that the system can run")
	// ErrArgsTooLong: arguments and environment exceed the system's limit.
	ErrArgsTooLong = fault.New(fault.TooLarge, "has more arguments and environment than the system takes")
	// ErrEnvName: a variable's name is empty or holds = or NUL; StartError.What names it.
	ErrEnvName = fault.New(fault.BadInput, "is not a usable name of an environment variable")
	// ErrHasNUL: a NUL in the name, an argument or a value; StartError.What says where.
	ErrHasNUL = fault.New(fault.BadInput, "must not contain NUL")
	// ErrEnding: the session or the server is ending, so no command is started.
	ErrEnding = fault.New(fault.Cancelled, "the server is ending, no command is started any more")
)

// A StartError says why one command was not started.
type StartError struct {
	Command string // its name, as it was given
	What    string // the part at fault: "command", "args[2]", "env NAME", or a variable's name
	Err     error  // one of the errors above, or the system's
	Refused string // what the sandbox refused, if that is why; a sentence
}

// Hint says what would permit the program.
func (e *StartError) Hint() string { return e.Refused }

func (e *StartError) Error() string { return fmt.Sprintf("%q %v", e.What, e.Err) }

func (e *StartError) Unwrap() error { return e.Err }

// A Command is one program to run.
type Command struct {
	Name string   // a bare name is searched in PATH; with a separator it counts from Dir
	Args []string // without the name
	Path string   // PATH to search instead of the one that the program will have
	Dir  string   // absolute, checked by the caller; empty means the workspace

	Env     map[string]string // added to the base environment, and wins
	Without []string          // names that are taken out of the base environment
	Only    []string          // the only names that are kept of either; nil: all
	Startup *Startup          // what the program reads first; may be nil
	Base    []string          // instead of the host's filtered environment; only TMPDIR and a private HOME are added

	Stdin          []byte        // nil: end of file at once
	Stdout, Stderr bool          // whether to capture; what is not captured goes to the null device
	Keep           int           // bytes kept at each end of a stream; 0 means Limits.OutputBytes
	Tail           *capture.Tail // watches the output while it comes; may be nil

	// Live and Terminal are for [Shell.Start]. Live: stdin stays open and both outputs
	// are one stream. Terminal: all three are a terminal, which the command controls.
	Live     bool
	Label    string // how lists call it
	Terminal *Size
	first    int                // bytes kept at the beginning, when not Keep
	copyTo   func(piece []byte) // gets all that a Live command writes, before it is kept; may be nil

	span *trace.Span // to which it belongs, as its variables say; nil for none

	Read, Write []string // absolute paths that it may reach besides what every command may

	Timeout     time.Duration // 0 means none
	NoSurvivors bool          // kill what the program leaves running
}

// A Size is that of a terminal, in characters.
type Size struct{ Rows, Columns uint16 }

// A Result is how a command ended and what it wrote.
type Result struct {
	ExitCode  int    // 128+n when signal n ended it
	Signal    string // such as "SIGKILL"; empty after a normal exit
	TimedOut  bool   // its deadline passed
	Cancelled bool   // its context or its session ended
	Stdout    capture.Output
	Stderr    capture.Output
	Duration  time.Duration
	Refused   []string // what the sandbox kept the command from, a sentence each
}

// check refuses what no system could run.
func (c *Command) check() error {
	fail := func(what string, err error) error { return &StartError{Command: c.Name, What: what, Err: err} }
	if c.Name == "" {
		return fail("command", ErrNoProgram)
	}
	if strings.ContainsRune(c.Name, 0) {
		return fail("command", ErrHasNUL)
	}
	for i, arg := range c.Args {
		if strings.ContainsRune(arg, 0) {
			return fail(fmt.Sprintf("args[%d]", i), ErrHasNUL)
		}
	}
	for name, value := range c.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return fail(name, ErrEnvName)
		}
		if strings.ContainsRune(value, 0) {
			return fail("env "+name, ErrHasNUL)
		}
	}
	return nil
}
