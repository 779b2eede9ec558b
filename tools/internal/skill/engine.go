package skill

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/sandbox/files"
	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/sandbox/scratch"
	"github.com/perstack-ai/perstack-base/skillrepo"
)

// An Engine is what all sessions of one server share. All fields are required
// but AllowRead, AllowWrite, PassEnv, Network and Confined.
type Engine struct {
	Repo      *skillrepo.Repo
	Files     *files.FS         // the workspace
	Workdirs  *scratch.Workdirs // the run workspaces of its sessions, and the artifacts
	Log       *slog.Logger
	HostEnv   func() []string // what every command starts from
	PassEnv   []string        // names that commands may see although they look secret
	AllowRead []string        // directories and files outside that inputs may come from
	ReadOnly  bool            // nothing a skill brings along is run
	Confined  func() bool     // whether the kernel confines commands; nil = it does not

	// Network is what of the network commands may use where they are confined.
	Network process.Network

	// AllowWrite are directories outside the workspace that commands may write.
	AllowWrite []string

	login login
}

// online reports whether commands have a network.
func (e *Engine) online() bool { return !e.Network.Closed() || e.Confined == nil || !e.Confined() }

// A Session is what one client has done with skills. A nil *Session, that of a
// server without skills, has no hooks.
type Session struct {
	ID string // session-<8 hex>

	engine    *Engine
	shell     *process.Shell
	stateless bool

	mu     sync.Mutex
	active map[string]*activation
	docs   map[string]selection
	work   *runWorkspace
}

// NewSession begins a session whose commands run in shell. One that is stateless
// lives for a single call: its gate is open, and no hook watches it.
func (e *Engine) NewSession(shell *process.Shell, stateless bool) *Session {
	var id [4]byte
	_, _ = rand.Read(id[:]) // never fails
	s := &Session{
		ID: "session-" + hex.EncodeToString(id[:]), engine: e, shell: shell, stateless: stateless,
		active: map[string]*activation{}, docs: map[string]selection{},
	}
	if shell.Contained() {
		shell.Mount(s.mounted)
	}
	return s
}

// mounted are the places that a container of the session has for skills: the
// directories of those that are known, and, where it is the session's own, its run
// workspace. What skill commands may write there they are told with each command.
func (s *Session) mounted(ctx context.Context, own bool) process.Places {
	p := process.Places{Read: s.skillDirs()}
	if !own || s.engine.ReadOnly {
		return p
	}
	w, err := s.workspace(ctx)
	if err != nil || w.dir.Mkdir(hooksDir) != nil {
		return p // the first skill that is run says why
	}
	p.Read = append(p.Read, w.dir.Root())
	p.Write = []string{w.abs(workDir), w.abs(outDir), w.abs(runsDir), w.abs(hooksDir)}
	return p
}

// Close removes the run workspace. The session's commands must have ended.
func (s *Session) Close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.work != nil {
		span := s.work.origin.Start(spanCleanup)
		s.work.dir.Close()
		span.End()
		s.work = nil
	}
}

// MaxListedNames is how many names of skills a schema lists.
const MaxListedNames = 256

// Names are the known skills, sorted.
func (e *Engine) Names() []string {
	var names []string
	for _, s := range e.Repo.List() {
		names = append(names, s.Name)
	}
	return names
}

// find returns the skill of that name as it is on disk.
func (e *Engine) find(ctx context.Context, name string) (*skillrepo.Skill, error) {
	if name == "" {
		return nil, errorf(fault.BadInput, "skill is required")
	}
	if sk, ok := e.Repo.Get(ctx, name); ok {
		return sk, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	err := errorf(fault.NotFound, "unknown skill: %s", name)
	err.Way = e.knownHint(name)
	return nil, err
}

// maxHintNames bounds the names that a hint lists.
const maxHintNames = 50

// knownHint lists the known names, those like the given one first.
func (e *Engine) knownHint(name string) string {
	names := e.Names()
	if len(names) == 0 {
		return "No skill is known."
	}
	near := files.Similar(name, names, 5)
	for _, n := range names {
		if !slices.Contains(near, n) {
			near = append(near, n)
		}
	}
	text := "Known skills: " + strings.Join(near[:min(len(near), maxHintNames)], ", ")
	if len(near) > maxHintNames {
		text += ", …"
	}
	return text + "."
}

// page is what a rendering of the skill needs; files are its files.
func (s *Session) page(sk *skillrepo.Skill, files []skillrepo.File, body string, args []string) *Page {
	p := &Page{
		Name: sk.Name, Dir: sk.Dir, Body: body, Trusted: sk.Trusted, Shell: sk.Shell, AllowedTools: sk.AllowedTools,
		SkillFile: sk.SkillFile(), Session: s.ID, Arguments: args,
	}
	for _, f := range files {
		p.Files = append(p.Files, f.Path)
	}
	return p
}

// An Error is a failure, worded for the API.
type Error struct {
	Kind fault.Code
	Msg  string
	Way  string // what to try next, or ""
}

func (e *Error) Error() string    { return e.Msg }
func (e *Error) Code() fault.Code { return e.Kind }

// Hint says what to try next.
func (e *Error) Hint() string { return e.Way }

// Message is the text of an *Error in err's chain as it is, and otherwise what else said.
func Message(err error, otherwise string) string {
	var exact *Error
	if errors.As(err, &exact) {
		return exact.Msg
	}
	return otherwise
}

func errorf(kind fault.Code, format string, args ...any) *Error {
	return &Error{Kind: kind, Msg: fmt.Sprintf(format, args...)}
}
