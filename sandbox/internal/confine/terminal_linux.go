//go:build amd64 || arm64

package confine

import (
	"os"
	"sync"

	"github.com/perstack-ai/perstack-base/sandbox/internal/pty"
)

// givenTerminals are the masters, which the server holds, of terminals that it
// gave to commands.
type givenTerminals struct {
	mu      sync.Mutex
	masters []*os.File
}

func (g *givenTerminals) add(master *os.File) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.masters = append(g.open(), master)
}

// has reports whether one of them is open that has the number: only then it is
// nobody else's.
func (g *givenTerminals) has(number int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.masters {
		if pty.NumberOf(m) == number {
			return true
		}
	}
	return false
}

// open lists those that are not closed yet; mu is held.
func (g *givenTerminals) open() (open []*os.File) {
	for _, m := range g.masters {
		if pty.NumberOf(m) >= 0 {
			open = append(open, m)
		}
	}
	return open
}
