package dispatch

import (
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// A Session is the client as mcp-go sees it. The one of a connection serves
// its legacy requests. Every modern request has one of its own, with the same
// id, because what one request says of its client holds for no other.
type Session struct {
	id    string
	notes chan mcp.JSONRPCNotification // nil: nothing is ever sent unasked
	ask   Ask                          // nil: the client cannot be asked

	mu      sync.Mutex
	ready   bool
	info    mcp.Implementation
	caps    mcp.ClientCapabilities
	version string
	level   mcp.LoggingLevel
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
func (s *Session) MarkReady() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = true
}

// Initialized reports whether the session is ready for notifications.
func (s *Session) Initialized() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}

// GetClientInfo returns what the client calls itself.
func (s *Session) GetClientInfo() mcp.Implementation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info
}

// SetClientInfo records what the client calls itself.
func (s *Session) SetClientInfo(info mcp.Implementation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.info = info
}

// GetClientCapabilities returns what the client can do.
func (s *Session) GetClientCapabilities() mcp.ClientCapabilities {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.caps
}

// SetClientCapabilities records what the client can do.
func (s *Session) SetClientCapabilities(caps mcp.ClientCapabilities) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.caps = caps
}

// ProtocolVersion returns what initialize has agreed on, "" before.
func (s *Session) ProtocolVersion() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// SetProtocolVersion records what initialize has agreed on.
func (s *Session) SetProtocolVersion(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = version
}

// SetLogLevel records what the client wants to be told, where an extension of the
// server has switched logging on.
func (s *Session) SetLogLevel(level mcp.LoggingLevel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.level = level
}

// GetLogLevel returns what the client wants to be told.
func (s *Session) GetLogLevel() mcp.LoggingLevel {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.level == "" {
		return mcp.LoggingLevelInfo
	}
	return s.level
}
