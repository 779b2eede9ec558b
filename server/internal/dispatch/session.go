package dispatch

import (
	"cmp"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/tools"
)

// A Session is the client as mcp-go sees it. The one of a connection serves
// its legacy requests. Every modern request has one of its own, with the same
// id, because what one request says of its client holds for no other.
type Session struct {
	id    string
	notes chan mcp.JSONRPCNotification // nil: no notification is ever sent
	ask   Ask                          // nil: the client cannot be asked

	ready   atomic.Bool
	info    field[mcp.Implementation]
	caps    field[mcp.ClientCapabilities]
	version field[string]
	level   field[mcp.LoggingLevel]
}

var (
	_ mcpserver.SessionWithClientInfo      = (*Session)(nil)
	_ mcpserver.SessionWithProtocolVersion = (*Session)(nil)
	_ mcpserver.SessionWithElicitation     = (*Session)(nil)
	_ mcpserver.SessionWithSampling        = (*Session)(nil)
	_ mcpserver.SessionWithLogging         = (*Session)(nil)
)

// noteBacklog is how many list_changed may wait for the writer. More are
// dropped: one tells the client as much as ten.
const noteBacklog = 64

// NewSession makes the session of a client that ask reaches; nil means that it
// cannot be asked.
func NewSession(id string, ask Ask) *Session { return &Session{id: id, ask: ask} }

// Listen makes the session one that mcp-go can tell things, before it is
// registered, and returns where they arrive.
func (s *Session) Listen() <-chan mcp.JSONRPCNotification {
	if s.notes == nil {
		s.notes = make(chan mcp.JSONRPCNotification, noteBacklog)
	}
	return s.notes
}

// SessionID returns the id under which mcp-go knows the client.
func (s *Session) SessionID() string { return s.id }

// NotificationChannel is where mcp-go puts what it tells every client.
func (s *Session) NotificationChannel() chan<- mcp.JSONRPCNotification { return s.notes }

// Initialize does nothing: mcp-go calls it before the answer to initialize is
// written, and nothing may go out ahead of that. See MarkReady.
func (s *Session) Initialize() {}

// MarkReady makes the session ready for notifications.
func (s *Session) MarkReady() { s.ready.Store(true) }

// Initialized reports whether the session is ready for notifications.
func (s *Session) Initialized() bool { return s.ready.Load() }

// GetClientInfo returns what the client calls itself.
func (s *Session) GetClientInfo() mcp.Implementation { return s.info.get() }

// SetClientInfo records what the client calls itself.
func (s *Session) SetClientInfo(info mcp.Implementation) { s.info.set(info) }

// GetClientCapabilities returns what the client can do.
func (s *Session) GetClientCapabilities() mcp.ClientCapabilities { return s.caps.get() }

// SetClientCapabilities records what the client can do.
func (s *Session) SetClientCapabilities(caps mcp.ClientCapabilities) { s.caps.set(caps) }

// ProtocolVersion returns what initialize has agreed on, "" before.
func (s *Session) ProtocolVersion() string { return s.version.get() }

// SetProtocolVersion records what initialize has agreed on.
func (s *Session) SetProtocolVersion(version string) { s.version.set(version) }

// SetLogLevel records what the client wants to be told, where an extension of the
// server has switched logging on.
func (s *Session) SetLogLevel(level mcp.LoggingLevel) { s.level.set(level) }

// GetLogLevel returns what the client wants to be told.
func (s *Session) GetLogLevel() mcp.LoggingLevel { return cmp.Or(s.level.get(), mcp.LoggingLevelInfo) }

// A field is a value that several requests set and read at a time.
type field[T any] struct{ value atomic.Pointer[T] }

func (f *field[T]) set(v T) { f.value.Store(&v) }

// get returns the value, the zero value before it is set.
func (f *field[T]) get() (v T) {
	if set := f.value.Load(); set != nil {
		v = *set
	}
	return v
}

// Sessions makes what the tools keep for a client.
type Sessions interface {
	// Open makes the session of one connection; end drops it.
	Open(id string) (session *tools.Session, end func())
	// OpenCall makes the session of a single call that nothing comes before or after.
	OpenCall() (session *tools.Session, end func())
}
