package process

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/internal/remote"
	"github.com/perstack-ai/perstack-base/sandbox/internal/settings"
	"github.com/perstack-ai/perstack-base/sandbox/process/capture"
)

// What a server and its runner tell each other in the words of package remote.

// startOf is a command on the wire. Its stdin goes before it.
func startOf(c *Command, startup *remote.Startup) *remote.Start {
	s := &remote.Start{
		Name: remote.Raw(c.Name), Args: remote.Raws(c.Args), Path: remote.Raw(c.Path), Dir: remote.Raw(c.Dir),
		Without: remote.Raws(c.Without), Only: remote.Raws(c.Only), Base: remote.Raws(c.Base), HasBase: c.Base != nil,
		Startup: startup, Stdin: c.Stdin != nil, Stdout: c.Stdout, Stderr: c.Stderr, Tail: c.Tail != nil, Keep: c.Keep,
		Read: remote.Raws(c.Read), Write: remote.Raws(c.Write), Timeout: c.Timeout, NoSurvivors: c.NoSurvivors,
	}
	set := c.Env
	if c.span != nil {
		s.Without = append(s.Without, remote.Raws(traceNames)...)
		set = c.span.Env()
		maps.Copy(set, c.Env)
	}
	for name, value := range set {
		s.Set = append(s.Set, remote.Raw(name+"="+value))
	}
	slices.Sort(s.Set)
	if t := c.Terminal; t != nil {
		s.Terminal, s.Rows, s.Columns = true, t.Rows, t.Columns
	}
	return s
}

// commandOf is the command again.
func commandOf(s *remote.Start, stdin []byte) Command {
	c := Command{
		Name: string(s.Name), Args: remote.Strings(s.Args), Path: string(s.Path), Dir: string(s.Dir),
		Without: remote.Strings(s.Without), Only: remote.Strings(s.Only), Stdout: s.Stdout, Stderr: s.Stderr, Keep: s.Keep,
		Read: remote.Strings(s.Read), Write: remote.Strings(s.Write), Timeout: s.Timeout, NoSurvivors: s.NoSurvivors,
	}
	if s.HasBase {
		c.Base = append([]string{}, remote.Strings(s.Base)...)
	}
	if s.Stdin {
		c.Stdin = append([]byte{}, stdin...)
	}
	if len(s.Set) > 0 {
		c.Env = map[string]string{}
	}
	for _, entry := range s.Set {
		name, value, _ := strings.Cut(string(entry), "=")
		c.Env[name] = value
	}
	if s.Tail {
		c.Tail = &capture.Tail{}
	}
	if s.Terminal {
		c.Terminal = &Size{Rows: s.Rows, Columns: s.Columns}
	}
	if u := s.Startup; u != nil && len(u.Files) > 0 {
		c.Startup = &Startup{Var: u.Var, InDir: u.InDir, Name: string(u.Files[0].Name), Text: string(u.Files[0].Data), copied: filesOf(u.Files[1:])}
	}
	return c
}

func filesOf(files []remote.File) (out []settings.File) {
	for _, f := range files {
		out = append(out, settings.File{Name: string(f.Name), Text: string(f.Data)})
	}
	return out
}

func toFiles(files []settings.File) (out []remote.File) {
	for _, f := range files {
		out = append(out, remote.File{Name: remote.Raw(f.Name), Data: []byte(f.Text)})
	}
	return out
}

// causes are the errors that callers tell apart, by their names on the wire.
var causes = map[string]error{
	"noProgram": ErrNoProgram, "notExecutable": ErrNotExecutable, "badFormat": ErrBadFormat, "argsTooLong": ErrArgsTooLong,
	"envName": ErrEnvName, "hasNUL": ErrHasNUL, "ending": ErrEnding, "unconfined": ErrUnconfined, "noTerminal": ErrNoTerminal,
	"inputEnded": ErrInputEnded, "notExist": fs.ErrNotExist, "notDirectory": sandbox.ErrNotDirectory, "permission": fs.ErrPermission,
}

// The kinds of faults.
const (
	startFault = "start"
	pathFault  = "path"
)

func faultOf(err error) *remote.Fault {
	f := &remote.Fault{}
	var start *StartError
	var path *sandbox.PathError
	var hinter interface{ Hint() string }
	if errors.As(err, &hinter) {
		f.Hint = hinter.Hint()
	}
	switch {
	case errors.As(err, &start):
		f.Kind, f.Command, f.What, err = startFault, start.Command, start.What, start.Err
	case errors.As(err, &path):
		f.Kind, f.What, err = pathFault, path.Path, path.Err
	}
	f.Text = err.Error()
	for name, cause := range causes {
		if errors.Is(err, cause) {
			f.Cause = name
		}
	}
	return f
}

// A toldError is what a runner said of an error.
type toldError struct {
	text, hint string
	is         error // nil for one without a name
}

func (e *toldError) Error() string { return e.text }
func (e *toldError) Hint() string  { return e.hint }
func (e *toldError) Unwrap() error { return e.is }

// errorOf is the error again. A runner may say anything: it is text.
func errorOf(f *remote.Fault) error {
	text, hint := remote.Clip(f.Text), remote.Clip(f.Hint)
	cause := causes[f.Cause]
	err := cause
	if cause == nil || cause.Error() != text {
		err = &toldError{text: cmp.Or(text, "the command could not be run"), is: cause}
	}
	switch f.Kind {
	case startFault:
		return &StartError{Command: remote.Clip(f.Command), What: remote.Clip(f.What), Err: err, Refused: hint}
	case pathFault:
		return &sandbox.PathError{Path: remote.Clip(f.What), Err: err}
	}
	if hint != "" {
		return &toldError{text: text, hint: hint, is: cause}
	}
	return err
}
