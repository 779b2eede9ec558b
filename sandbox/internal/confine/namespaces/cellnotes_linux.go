//go:build amd64 || arm64

package namespaces

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Commands may signal their reaper, which is of their user and in their namespace,
// and so they can stop it. Whoever waits for its notes looks after it meanwhile.
const (
	firstLook     = 2 * time.Millisecond
	startLook     = 16 * time.Millisecond // at most this far apart while a program starts
	laterLook     = 250 * time.Millisecond
	stubborn      = 5 // found stopped so often in a row: somebody does it again and again
	undisturbed   = 100 * time.Millisecond
	longestStart  = 20 * time.Second
	cancelledWait = time.Second // a start that is given up may still succeed so long
)

var errSlowStart = errors.New("the program did not start within " + longestStart.String() +
	": other commands of the session may have stopped it; end them, or try again")

// ErrCancelled: nobody waits for the start any more.
var ErrCancelled = errors.New("the start was cancelled")

// read reads a note, or fails with os.ErrDeadlineExceeded. The kernel writes notes
// in one piece.
func (c *Cell) read(wait time.Duration) (n note, err error) {
	if err := c.notes.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return n, err
	}
	var b [noteSize]byte
	_, err = io.ReadFull(c.notes, b[:])
	return note{binary.NativeEndian.Uint64(b[:8]), binary.NativeEndian.Uint64(b[8:])}, err
}

func late(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// began waits for the first note, which tells that the program is executed or
// cannot be. It gives up when that takes too long, or some time after cancel.
func (c *Cell) began(cancel <-chan struct{}) (n note, err error) {
	var spent, cancelled time.Duration
	for pause, stopped := firstLook, 0; ; pause = min(2*pause, startLook) {
		if n, err = c.read(pause); !late(err) {
			return n, err
		}
		spent += pause
		select {
		case <-cancel:
			cancelled += pause
		default:
		}
		switch {
		case cancelled >= cancelledWait:
			return n, ErrCancelled
		case spent >= longestStart:
			return n, errSlowStart
		case !c.forked(): // then nobody has the pipe, and its end follows
			continue
		}
		if stopped++; !c.StandsStill(true) {
			stopped = 0
		}
		if n, err = c.Urge(true, stopped); !late(err) {
			return n, err
		}
	}
}

// next waits for a note of a reaper whose leader was started.
func (c *Cell) next() (n note, err error) {
	for pause, stopped := firstLook, 0; ; pause = min(2*pause, laterLook) {
		if n, err = c.read(pause); !late(err) {
			return n, err
		}
		if !c.StandsStill(false) {
			stopped = 0
			continue
		}
		stopped++
		if n, err = c.Urge(false, stopped); !late(err) {
			return n, err
		}
		pause = firstLook
	}
}

// forked waits until there is a reaper, and takes down its id.
func (c *Cell) forked() bool {
	k := c.isolator.Keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.settle() != nil || k.fork.Errno() != 0 {
		return false
	}
	c.reaper = int(*k.born)
	return true
}

// StandsStill tells whether the reaper is stopped or, with all, a child of it;
// also when that cannot be found out. While a program starts, its leader is the only
// one there. Whoever has another parent comes from a program that has started, though
// the note of it may be late, and may stand still as that pleases.
func (c *Cell) StandsStill(all bool) bool {
	reaper, err := c.isolator.Procs.Member(c.reaper)
	if err == unix.ENOENT || err == unix.ESRCH {
		return false
	}
	if err != nil || reaper.Stopped() {
		return true
	}
	if !all {
		return false
	}
	members, err := c.members()
	for _, m := range members {
		if m.Parent == c.reaper && m.Stopped() {
			return true
		}
	}
	return err != nil
}

// Urge has the reaper go on and, with all, its children. Where somebody
// stops them again and again, they go on while the rest of the session stands still,
// and the note is read that comes of it.
func (c *Cell) Urge(all bool, stopped int) (n note, err error) {
	err = os.ErrDeadlineExceeded
	if stopped == 0 {
		return n, err
	}
	goOn := func() { c.goOn() }
	if all {
		goOn = c.goOnAll
	}
	if stopped < stubborn {
		goOn()
		return n, err
	}
	c.isolator.StandStill(func() {
		for spent := time.Duration(0); spent < undisturbed && late(err); spent += firstLook {
			goOn()
			n, err = c.read(firstLook)
		}
	})
	return n, err
}

// goOnAll has the reaper's children go on, and the reaper.
func (c *Cell) goOnAll() {
	members, _ := c.members() // the reaper goes on in any case
	for _, m := range members {
		if m.Parent == c.reaper {
			_ = c.isolator.Keeper.signal(m.PID, unix.SIGCONT)
		}
	}
	c.goOn()
}

// goOn has the reaper go on, should it have been stopped.
func (c *Cell) goOn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		_ = c.isolator.Keeper.signal(c.reaper, unix.SIGCONT)
	}
}

// giveUp ends a cell whose program does not start; where that fails, the session.
func (c *Cell) giveUp() {
	_ = c.Kill()
	select {
	case <-c.done:
	case <-time.After(sternly):
		c.isolator.Keeper.close()
	}
}
