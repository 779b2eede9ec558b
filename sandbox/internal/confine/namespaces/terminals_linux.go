//go:build amd64 || arm64

package namespaces

import (
	"fmt"
	"path/filepath"

	"github.com/perstack-ai/perstack-base/sandbox/internal/pty"
	"golang.org/x/sys/unix"
)

// openTerminals keeps the directory of the session's own terminals, below root,
// open: once the keeper is sealed nobody finds the way any more.
func (i *Isolator) openTerminals(root string) (err error) {
	i.terminals, err = unix.Open(filepath.Join(root, pty.Dir), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("terminals: %w", err)
	}
	return nil
}

// OpenTerminal makes a terminal that only the session sees.
func (i *Isolator) OpenTerminal() (*pty.Pair, error) {
	i.Keeper.Starting.Lock() // the directory stays open meanwhile
	defer i.Keeper.Starting.Unlock()
	return pty.OpenIn(i.terminals)
}
