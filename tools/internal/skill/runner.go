package skill

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/sandbox/process/capture"
)

// A runner runs the commands that a skill brings along, inline ones and hooks,
// in the session's shell. What they leave running is killed.
type runner struct{ s *Session }

// ownNames are what such commands get of the environment; nothing else of the server's.
var ownNames = []string{"PATH", "HOME", "LANG", "LC_ALL", "TZ"}

// Run implements [Runner].
func (r runner) Run(ctx context.Context, c Command) Result {
	env := r.s.loginEnv(ctx)
	set := map[string]string{"PROJECT_DIR": r.s.engine.Files.Root()}
	for _, entry := range c.Env {
		name, value, _ := strings.Cut(entry, "=")
		set[name] = value
	}
	res, err := r.s.shell.Run(ctx, process.Command{
		Name: c.Argv[0], Args: c.Argv[1:], Path: lookupEnv(env, "PATH"), Dir: c.Dir, Base: pick(env, ownNames), Only: ownNames, Env: set,
		Stdin: c.Stdin, Stdout: true, Stderr: true, Keep: c.MaxOutput, Timeout: c.Timeout, NoSurvivors: true,
		Read: r.s.skillDirs(), Write: c.Write,
	})
	if err != nil {
		return Result{Err: plain(err)}
	}
	out := Result{Stdout: headText(res.Stdout), Stderr: headText(res.Stderr), ExitCode: res.ExitCode, TimedOut: res.TimedOut, Refused: res.Refused}
	if res.Signal != "" {
		out.ExitCode = -1
	}
	if res.Cancelled {
		out.Err = errors.New("the call was cancelled")
	}
	return out
}

func pick(env, names []string) []string {
	if env == nil {
		return nil
	}
	kept := []string{}
	for _, entry := range env {
		if name, _, _ := strings.Cut(entry, "="); slices.Contains(names, name) {
			kept = append(kept, entry)
		}
	}
	return kept
}

// headText is a stream as text, its head only when it was long.
func headText(o capture.Output) string {
	if o.Complete() {
		return capture.ValidText(slices.Concat(o.Head, o.Tail))
	}
	return capture.ValidText(o.Head)
}

// plain words why a command was not started, without a path of the machine.
func plain(err error) error {
	if path := new(sandbox.PathError); errors.As(err, &path) {
		return errors.New("the directory of the skill is not there; put it back, or end the session to be rid of the skill")
	}
	return err
}
