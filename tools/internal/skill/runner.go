package skill

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/sandbox/process/capture"
	"github.com/perstack-ai/perstack-base/sandbox/scratch"
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
		return errors.New("the directory of the skill is not there; put it back, or end the session to drop the skill")
	}
	return err
}

// readOnlyCopy stands for every refusal to write the copy of a skill: no flag
// would permit it, and its path is new with every session.
const readOnlyCopy = "blocked by the sandbox: the skill's copy is read only; write to out/ or work/ ($OUTPUT_DIR, $WORK_DIR)"

// refusals is what the sandbox kept a command of a skill from, which ran in dir.
func (w *runWorkspace) refusals(r process.Result, dir string) (sentences []string) {
	private := false
	for _, s := range r.Refused {
		if strings.Contains(s, w.dir.Root()) {
			private = true
		} else {
			sentences = append(sentences, s)
		}
	}
	if private || len(sentences) == 0 && r.ExitCode != 0 && w.deniedMaking(dir, r.Stderr) {
		sentences = append(sentences, readOnlyCopy)
	}
	return sentences
}

// denied finds the names that a program was not allowed to make: mkdir and touch
// put them in quotes, shells between colons.
var denied = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)(?:[‘'"]|: )([^‘’'":\n]+)[’'"]?: (?:Permission denied|Read-only file system)$`)
})

// deniedMaking reports whether a command in the copy of a skill complains of a name
// that is not there: it tried to make it.
func (w *runWorkspace) deniedMaking(dir string, stderr capture.Output) bool {
	rel, ok := strings.CutPrefix(dir, w.dir.Root()+"/")
	if !ok || !scratch.Below(rel, skillsDir) {
		return false
	}
	for _, m := range denied().FindAllStringSubmatch(headText(stderr), -1) {
		if strings.HasPrefix(m[1], "/") {
			continue
		}
		if at, err := w.dir.Resolve(rel + "/" + m[1]); err == nil && !at.Exists && scratch.Below(at.Rel, skillsDir) {
			return true
		}
	}
	return false
}
