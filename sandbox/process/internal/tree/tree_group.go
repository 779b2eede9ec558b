//go:build unix && !linux

package tree

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

func (g *group) Alive() bool { return proc.Signal(-g.pid, 0) == nil }

func (g *group) reach(sig syscall.Signal) bool { return proc.Signal(-g.pid, sig) == nil }

// KillMarked finds none here.
func KillMarked([]string, syscall.Signal) {}
