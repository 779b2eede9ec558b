//go:build amd64 || arm64

package namespaces

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// Bounds of a kill, for who waits for it. What sleeps in the kernel, or does not get
// the processor, may outlast them; it is killed all the same.
const (
	gently  = 50 * time.Millisecond   // while the others of the session go on
	sternly = 1500 * time.Millisecond // while they stand still
)

// Kill kills every process of the cell. That the reaper has no children left is
// how the kernel says that it is done. Whoever forks faster than the processes
// can be listed is killed while the whole session stands still.
func (c *Cell) Kill() error {
	if c.strikeFor(gently) == nil {
		return nil
	}
	var err error
	c.isolator.StandStill(func() { err = c.strikeFor(sternly) })
	if err != nil && err != ErrLives { // nobody can be told apart
		err = c.isolator.Keeper.signal(-1, unix.SIGKILL)
	}
	if err == kernel.ErrGone {
		return nil
	}
	if err == ErrLives && c.dying.CompareAndSwap(false, true) {
		go c.strikeOn()
	}
	return err
}

// strikeOn kills what has outlasted the bounds, for as long as it takes.
func (c *Cell) strikeOn() {
	for pause := sternly; c.isolator.Keeper.signal(-1, 0) != kernel.ErrGone; pause = min(2*pause, time.Minute) {
		select {
		case <-c.done:
			return
		case <-time.After(pause):
			c.isolator.StandStill(func() { _ = c.strikeFor(gently) })
		}
	}
}

// ErrLives: what was killed sleeps in the kernel.
var ErrLives = errors.New("a killed process did not end")

// strikeFor kills again and again what is left.
func (c *Cell) strikeFor(long time.Duration) (err error) {
	for pause, spent := time.Millisecond, time.Duration(0); spent < long; pause, spent = min(2*pause, 16*time.Millisecond), spent+pause {
		err = c.each(unix.SIGKILL)
		select {
		case <-c.done:
			return nil
		case <-time.After(pause):
		}
	}
	if err == nil {
		err = ErrLives
	}
	return err
}

// Signal sends sig to every process of the cell.
func (c *Cell) Signal(sig syscall.Signal) error { return c.each(sig) }

// Processes are where the session's processes are shown, and those of the cell, by
// their ids there, but for what begins meanwhile.
func (c *Cell) Processes() (dir string, all []proc.Process) {
	dir = fmt.Sprintf("/proc/self/fd/%d", c.isolator.Procs)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return dir, nil
	}
	return dir, proc.Below(dir, c.reaper)
}

// each signals what descends from the reaper, and has that go on, should it have
// been stopped.
func (c *Cell) each(sig syscall.Signal) error {
	members, err := c.members()
	for _, m := range members {
		_ = c.isolator.Keeper.signal(m.PID, sig) // gone is as good
	}
	c.goOn() // also when only the dead are left, which it has to collect
	return err
}

// members lists the processes of the cell.
func (c *Cell) members() ([]kernel.Member, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil, nil
	}
	all, err := c.isolator.Procs.List()
	return kernel.Descendants(all, func(m kernel.Member) bool { return m.PID == c.reaper }), err
}

// StandStill does something while no process of the session runs, so that none
// can fork, and then lets those go on that it has stopped.
func (i *Isolator) StandStill(do func()) {
	i.Still.Lock()
	before, err := i.stopped()
	if err == nil {
		i.stop()
	}
	do()
	go func() {
		defer i.Still.Unlock()
		i.resume(before)
	}()
}

// stopped lists those that stand still already, and shall afterwards.
func (i *Isolator) stopped() (map[kernel.Identity]bool, error) {
	all, err := i.Procs.List()
	before := map[kernel.Identity]bool{}
	for _, m := range all {
		if m.State == 'T' && !i.Procs.Ours(m.PID) {
			before[m.Identity()] = true
		}
	}
	return before, err
}

// stop stops all processes at once. One that is being forked meanwhile inherits
// the signal and stops when it first runs.
func (i *Isolator) stop() {
	for range 20 {
		_ = i.Keeper.signal(-1, unix.SIGSTOP)
		all, err := i.Procs.List()
		if err != nil || quiet(all) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// quiet tells whether none of them runs. What sleeps in the kernel stops before
// it returns from there.
func quiet(all []kernel.Member) bool {
	for _, m := range all {
		if !m.Stopped() && m.State != 'D' && m.State != 'Z' {
			return false
		}
	}
	return true
}

// Resuming is over when several looks, a pause between them, found nobody who was
// stopped: a process that was being forked may see its signals late.
const (
	looks     = 5
	lookPause = 20 * time.Millisecond
	mostLooks = 50 // by then somebody stops others all the time
)

// resume has all but those go on that were stopped before. When the processes
// cannot be listed, it has them all go on, rather than leave a session stopped. It ends also
// when a command keeps stopping others: the next kill waits for it.
func (i *Isolator) resume(before map[kernel.Identity]bool) {
	for clean, listed := 0, 0; clean < looks && listed < mostLooks; {
		all, err := i.Procs.List()
		if err != nil {
			if i.Keeper.signal(-1, unix.SIGCONT) == kernel.ErrGone {
				return
			}
		}
		clean++
		for _, m := range all {
			if (listed == 0 || m.State == 'T') && !before[m.Identity()] {
				_ = i.Keeper.signal(m.PID, unix.SIGCONT)
				clean = 0
			}
		}
		if listed++; err != nil {
			clean, listed = 0, 0
		}
		time.Sleep(lookPause)
	}
}

// sweep kills what has fallen to the keeper, because its reaper was killed.
func (i *Isolator) sweep() {
	i.StandStill(func() {
		for range 100 {
			all, err := i.Procs.List()
			strays := i.strays(all)
			for _, m := range strays {
				_ = i.Keeper.signal(m.PID, unix.SIGKILL)
			}
			if err == nil && len(strays) == 0 || i.Keeper.signal(-1, 0) == kernel.ErrGone {
				break
			}
			time.Sleep(time.Millisecond)
		}
	})
	if i.Keeper.signal(-1, 0) == kernel.ErrGone {
		i.Keeper.awaitEnd()
	}
}

// strays picks those that no reaper has.
func (i *Isolator) strays(all []kernel.Member) []kernel.Member {
	root := func(m kernel.Member) bool { return m.Parent == 1 && !i.Procs.Ours(m.PID) }
	strays := kernel.Descendants(all, root)
	for _, m := range all {
		if root(m) {
			strays = append(strays, m)
		}
	}
	return strays
}
