//go:build amd64 || arm64

package confine

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/pty"
)

// openTerminals keeps the directory of the session's own terminals, below root,
// open: once the keeper is sealed nobody finds the way any more.
func (i *Isolator) openTerminals(root string) (err error) {
	i.terminals, err = unix.Open(filepath.Join(root, terminals), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("terminals: %w", err)
	}
	return nil
}

// OpenTerminal makes a terminal that only the session sees.
func (i *Isolator) OpenTerminal() (*pty.Pair, error) {
	i.keeper.starting.Lock() // the directory stays open meanwhile
	defer i.keeper.starting.Unlock()
	return pty.OpenIn(i.terminals)
}

// OpenTerminal makes a terminal among those of the machine. The session may open
// it by its name for as long as the master is open.
func (c *Confiner) OpenTerminal() (*pty.Pair, error) {
	pair, err := pty.Open()
	if err == nil {
		c.given.add(pair.Master)
	}
	return pair, err
}

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
