//go:build amd64 || arm64

package confine

import (
	"errors"
	"fmt"
	"syscall"
	"time"

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
	c.isolator.standStill(func() { err = c.strikeFor(sternly) })
	if err != nil && err != errLives { // nobody can be told apart
		err = c.isolator.keeper.signal(-1, unix.SIGKILL)
	}
	if err == errGone {
		return nil
	}
	if err == errLives && c.dying.CompareAndSwap(false, true) {
		go c.strikeOn()
	}
	return err
}

// strikeOn kills what has outlasted the bounds, for as long as it takes.
func (c *Cell) strikeOn() {
	for pause := sternly; c.isolator.keeper.signal(-1, 0) != errGone; pause = min(2*pause, time.Minute) {
		select {
		case <-c.done:
			return
		case <-time.After(pause):
			c.isolator.standStill(func() { _ = c.strikeFor(gently) })
		}
	}
}

var errLives = errors.New("a killed process did not end")

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
		err = errLives
	}
	return err
}

// Signal sends sig to every process of the cell.
func (c *Cell) Signal(sig syscall.Signal) error { return c.each(sig) }

// Processes are where the session's processes are shown, and those of the cell, by
// their ids there, but for what begins meanwhile.
func (c *Cell) Processes() (dir string, all []proc.Process) {
	dir = fmt.Sprintf("/proc/self/fd/%d", c.isolator.procs)
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
		_ = c.isolator.keeper.signal(m.pid, sig) // gone is as good
	}
	c.goOn() // also when only the dead are left, which it has to collect
	return err
}

// members lists the processes of the cell.
func (c *Cell) members() ([]member, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil, nil
	}
	all, err := c.isolator.procs.list()
	return descendants(all, func(m member) bool { return m.pid == c.reaper }), err
}

// standStill does something while no process of the session runs, so that none
// can fork, and then lets those go on that it has stopped.
func (i *Isolator) standStill(do func()) {
	i.still.Lock()
	before, err := i.stopped()
	if err == nil {
		i.stop()
	}
	do()
	go func() {
		defer i.still.Unlock()
		i.resume(before)
	}()
}

// stopped lists those that stand still already, and shall afterwards.
func (i *Isolator) stopped() (map[identity]bool, error) {
	all, err := i.procs.list()
	before := map[identity]bool{}
	for _, m := range all {
		if m.state == 'T' && !i.procs.ours(m.pid) {
			before[m.identity()] = true
		}
	}
	return before, err
}

// stop stops all processes at once. One that is being forked meanwhile inherits
// the signal and stops when it first runs.
func (i *Isolator) stop() {
	for range 20 {
		_ = i.keeper.signal(-1, unix.SIGSTOP)
		all, err := i.procs.list()
		if err != nil || quiet(all) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// quiet tells whether none of them runs. What sleeps in the kernel stops before
// it returns from there.
func quiet(all []member) bool {
	for _, m := range all {
		if !m.stopped() && m.state != 'D' && m.state != 'Z' {
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
func (i *Isolator) resume(before map[identity]bool) {
	for clean, listed := 0, 0; clean < looks && listed < mostLooks; {
		all, err := i.procs.list()
		if err != nil {
			if i.keeper.signal(-1, unix.SIGCONT) == errGone {
				return
			}
		}
		clean++
		for _, m := range all {
			if (listed == 0 || m.state == 'T') && !before[m.identity()] {
				_ = i.keeper.signal(m.pid, unix.SIGCONT)
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
	i.standStill(func() {
		for range 100 {
			all, err := i.procs.list()
			strays := i.strays(all)
			for _, m := range strays {
				_ = i.keeper.signal(m.pid, unix.SIGKILL)
			}
			if err == nil && len(strays) == 0 || i.keeper.signal(-1, 0) == errGone {
				break
			}
			time.Sleep(time.Millisecond)
		}
	})
	if i.keeper.signal(-1, 0) == errGone {
		i.keeper.awaitEnd()
	}
}

// strays picks those that no reaper has.
func (i *Isolator) strays(all []member) []member {
	root := func(m member) bool { return m.parent == 1 && !i.procs.ours(m.pid) }
	strays := descendants(all, root)
	for _, m := range all {
		if root(m) {
			strays = append(strays, m)
		}
	}
	return strays
}
