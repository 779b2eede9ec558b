//go:build unix && !linux

package process

import (
	"syscall"

	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// Without subreapers a tree is its process group: what leaves it is out of reach.

// stopWhenBegun asks for nothing here.
func stopWhenBegun(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

// throughShell changes nothing here.
func throughShell(path string, argv []string) (string, []string) { return path, argv }

// escapees are out of reach here.
type escapees struct{}

func (escapees) forget() {}

func (g *group) alive() bool { return proc.Signal(-g.pid, 0) == nil }

func (g *group) reach(sig syscall.Signal) bool { return proc.Signal(-g.pid, sig) == nil }

type strays struct {
	tmp string
	all bool
}

func (strays) wait() ending          { return ending{} }
func (strays) signal(syscall.Signal) {}
func (strays) kill()                 {}
func (strays) alive() bool           { return false }
func (strays) survivors() bool       { return false }
func (strays) release()              {}

func killMarked([]string, syscall.Signal) {}
