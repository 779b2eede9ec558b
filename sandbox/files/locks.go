package files

import (
	"runtime"
	"strings"
	"sync"
)

// locks serialises writers: one lock per path, handed on in the order of asking.
// Entries exist only while somebody holds or waits.
type locks struct {
	mu   sync.Mutex
	held map[string][]chan struct{} // holder present; the channels are those who wait
}

// lock waits until no other writer holds key.
func (l *locks) lock(key string) {
	l.mu.Lock()
	waiting, busy := l.held[key]
	if !busy {
		l.take(key)
		l.mu.Unlock()
		return
	}
	turn := make(chan struct{})
	l.held[key] = append(waiting, turn)
	l.mu.Unlock()
	<-turn
}

// try takes key if it is free now.
func (l *locks) try(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, busy := l.held[key]; busy {
		return false
	}
	l.take(key)
	return true
}

func (l *locks) take(key string) {
	if l.held == nil {
		l.held = map[string][]chan struct{}{}
	}
	l.held[key] = nil
}

// unlock hands key to whoever has waited longest.
func (l *locks) unlock(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting := l.held[key]
	if len(waiting) == 0 {
		delete(l.held, key)
		return
	}
	l.held[key] = waiting[1:]
	close(waiting[0])
}

// lockKey is the name under which a place is locked. Where disks usually ignore
// case, two spellings are one file.
func lockKey(rel string) string {
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		return strings.ToLower(rel)
	}
	return rel
}
