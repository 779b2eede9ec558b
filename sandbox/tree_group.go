//go:build unix && !linux

package sandbox

import (
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Without subreapers a tree is its process group: orphans go to init, which
// reaps them, and what leaves the group is out of reach.
var children reaper

type reaper struct{ starting sync.RWMutex }

func (*reaper) adopt()        {}
func (*reaper) own(int)       {}
func (*reaper) disown(int)    {}
func (*reaper) onReap(func()) {}
func (*reaper) reap()         {}

// escapees are out of reach here.
type escapees struct{}

func (escapees) forget() {}

func ticks() uint64 { return 0 }

func (g *group) alive() bool { return unix.Kill(-g.pid, 0) == nil }

func (g *group) signal(sig syscall.Signal) bool { return unix.Kill(-g.pid, sig) == nil }

type strays struct {
	tmp string
	all bool
}

func (strays) wait() ending    { return ending{} }
func (strays) terminate()      {}
func (strays) kill()           {}
func (strays) alive() bool     { return false }
func (strays) survivors() bool { return false }
func (strays) release()        {}

func killMarked([]string, syscall.Signal) {}
