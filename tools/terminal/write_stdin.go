package terminal

import (
	"context"
	"errors"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/tools"
)

type writeStdinIn struct {
	SessionID   string `json:"session_id" minLength:"1" doc:"From exec_command."`
	Chars       string `json:"chars" default:"" doc:"What to type; lines end with \\n. On a terminal control characters are keys: \\u0003 is Ctrl-C. Empty: only look."`
	EOF         bool   `json:"eof" default:"false" doc:"End its input after that; on a terminal type Ctrl-D."`
	YieldTimeMS *int64 `json:"yield_time_ms,omitempty" min:"0" max:"60000" doc:"How long to wait for output; 1000, or 5000 to look."`
	Offset      *int64 `json:"offset,omitempty" min:"0" doc:"Show output from here, also what was shown before."`
	MaxOutput   *int64 `json:"max_output,omitempty" min:"0" max:"1048576" doc:"Bytes of output in the answer."`
}

// How long a call waits that does not say so, and for how much silence.
const (
	afterTyping = 1000 * time.Millisecond
	toLook      = 5000 * time.Millisecond
	settled     = 200 * time.Millisecond
)

var writeStdin = tools.Define(tools.Info{
	Name: "write_stdin", Title: "Type or look", Effect: tools.Steers, View: tools.ViewTerminal, Budget: budget,
	Description: "Type into a command of exec_command, or look at it. Answers with new output once it pauses. Type secrets only where the user wants them.",
}, func(ctx context.Context, env *tools.Env, in writeStdinIn) (answer, error) {
	r, err := find(ctx, env, in.SessionID)
	if err != nil {
		return answer{}, err
	}
	wait, beyond := toLook, r.Told()
	if in.Chars != "" || in.EOF {
		wait, beyond = afterTyping, r.Bytes()
		if err := r.Write([]byte(in.Chars), in.EOF); err != nil {
			return answer{}, refused(err)
		}
	} else if in.Offset != nil {
		beyond = *in.Offset
	}
	if in.YieldTimeMS != nil {
		wait = time.Duration(*in.YieldTimeMS) * time.Millisecond
	}
	if in.Chars == "" && !in.EOF && in.Offset != nil && r.Bytes() > beyond {
		wait = 0 // it is there
	}
	if err := env.Follow(ctx, r, func() error { return r.Await(ctx, wait, beyond, settled) }); err != nil {
		return answer{}, err
	}
	return show(ctx, r, in.Offset, budgetOf(env, in.MaxOutput)), nil
})

// refused words why input was not taken.
func refused(err error) error {
	var ended *process.EndedError
	var full *process.InputFullError
	switch {
	case errors.As(err, &ended):
		e := tools.Errorf(fault.Conflict, "Look at its output with empty chars.", "The command has ended with exit code %d, so it reads nothing any more.", ended.Result.ExitCode)
		e.Data = struct {
			ExitCode int `json:"exit_code"`
		}{ended.Result.ExitCode}
		return e
	case errors.Is(err, process.ErrInputEnded):
		return tools.Errorf(fault.Conflict, "", "The input of this command was ended with eof, or it has closed it.")
	case errors.As(err, &full) && full.Waiting == 0:
		return tools.Errorf(fault.TooLarge, "Write it in pieces, or write a file and have the command read that.", "chars has more than the %d bytes that may wait to be read.", full.Most)
	case errors.As(err, &full):
		return tools.Errorf(fault.Unavailable, "Look whether it is busy, and write again when it reads.", "The command has not read what was written before: %d bytes wait, and at most %d may. Nothing of chars was written.", full.Waiting, full.Most)
	}
	return err
}
