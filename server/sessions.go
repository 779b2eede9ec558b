package server

import "sync"

// sessions are the ends of all sessions that have begun. Those of HTTP end in the
// background, so the end of the server waits for them here: what a session leaves
// on the machine is gone when Close returns.
type sessions struct {
	mu   sync.Mutex
	ends map[*func()]bool
}

// begin records a session and returns what ends it: once, however often and by
// whomever it is called, and not before it is done.
func (s *sessions) begin(end func()) func() {
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
