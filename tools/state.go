package tools

import (
	"context"
	"sync"

	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/tools/internal/skill"
)

// A Session is what lives as long as one client's connection: the process on
// stdio, the session on SSE and stateful HTTP. Make one with [NewSession].
type Session struct {
	ID    string
	Shell *process.Shell

	// OneCall: the session ends with its one call, so state must not be kept in
	// it; see [State.Find].
	OneCall bool

	// Skills is what the client has done with skills; nil on a server without them.
	Skills *skill.Session

	states states
}

// NewSession returns an empty session whose commands run in shell.
func NewSession(id string, shell *process.Shell) *Session {
	return &Session{ID: id, Shell: shell}
}

type sessionKey struct{}

// WithSession returns a context whose calls belong to s.
func WithSession(ctx context.Context, s *Session) context.Context {
	return context.WithValue(ctx, sessionKey{}, s)
}

// SessionOf returns the session of a call's context. Every call has one; its
// absence is a mistake of the transport and panics.
func SessionOf(ctx context.Context) *Session { return ctx.Value(sessionKey{}).(*Session) }

// states holds one value for each State. The zero value is ready.
type states struct {
	mu     sync.Mutex
	values map[any]any
}

// State keeps one T per session, made at first use. Declare it as a package
// variable beside the tools that share it.
type State[T any] struct {
	make               func() *T
	what, tool, prefix string // how a list is called, what starts one, how its ids begin
}

// NewState returns a State whose values begin as make returns them.
func NewState[T any](make func() *T) *State[T] { return &State[T]{make: make} }

// Lists says how errors call one of the lists that clients without a session have,
// which tool starts one, and how their ids begin.
func (s *State[T]) Lists(what, tool, prefix string) *State[T] {
	s.what, s.tool, s.prefix = what, tool, prefix
	return s
}

// Of returns the T of the call's session.
func (s *State[T]) Of(ctx context.Context) *T { return s.in(&SessionOf(ctx).states) }

// in returns the T that is kept among all.
func (s *State[T]) in(all *states) *T {
	all.mu.Lock()
	defer all.mu.Unlock()
	if v, ok := all.values[s]; ok {
		return v.(*T)
	}
	if all.values == nil {
		all.values = map[any]any{}
	}
	v := s.make()
	all.values[s] = v
	return v
}
