//go:build amd64 || arm64

package threads

import "github.com/perstack-ai/perstack-base/sandbox/internal/pty"

// OpenTerminal makes a terminal among those of the machine. The session may open
// it by its name for as long as the master is open.
func (c *Confiner) OpenTerminal() (*pty.Pair, error) {
	pair, err := pty.Open()
	if err == nil {
		c.Given.Add(pair.Master)
	}
	return pair, err
}
