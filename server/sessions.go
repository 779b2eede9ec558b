package server

import (
	"sync"

	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/server/internal/dispatch"
	"github.com/perstack-ai/perstack-base/tools"
)

// sessions are all that have begun and not ended. Those of HTTP end in the
// background, so the end of the server waits for them here: what a session leaves
// on the machine is gone when Close returns.
type sessions struct {
	commands *process.Commands
	skills   *tools.Skills

	mu   sync.Mutex
	ends map[*func()]bool
}

var _ dispatch.Sessions = (*sessions)(nil)

// Open makes the session of one connection. end drops it.
func (s *sessions) Open(id string) (session *tools.Session, end func()) {
	return s.begin(id, false)
}

// OpenCall makes the session of a single call that nothing comes before or after.
func (s *sessions) OpenCall() (session *tools.Session, end func()) {
	session, end = s.begin("", true)
	session.OneCall = true
	return session, end
}

// begin makes a session; for a single call every skill is as if it were activated.
func (s *sessions) begin(id string, single bool) (session *tools.Session, end func()) {
	shell := s.commands.NewShell()
	if single {
		shell = s.commands.NewCallShell()
	}
	session = tools.NewSession(id, shell)
	session.Skills = s.skills.NewSession(shell, single)
	return session, s.record(func() {
		shell.Close()
		session.Skills.Close()
	})
}

// record keeps what ends a session and returns what calls it: once, however often
// and by whomever, and not before it is done.
func (s *sessions) record(end func()) func() {
	once := sync.OnceFunc(end)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ends == nil {
		s.ends = map[*func()]bool{}
	}
	s.ends[&once] = true
	return func() {
		once()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.ends, &once)
	}
}

// end ends every session, at the same time, and waits for those that are ending.
func (s *sessions) end() {
	s.mu.Lock()
	ends := make([]func(), 0, len(s.ends))
	for end := range s.ends {
		ends = append(ends, *end)
	}
	s.mu.Unlock()
	var all sync.WaitGroup
	for _, end := range ends {
		all.Go(end)
	}
	all.Wait()
}
