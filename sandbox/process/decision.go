package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/sandbox/internal/cgroup"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/private"
)

// A decision says how commands are confined. It is made once, at the first use:
// never to list tools. The cage that proved itself is the first session's.
type decision struct {
	mu     sync.Mutex
	made   bool
	err    error        // why commands are not confined
	tier   Tier         // by which mechanism they are
	others []string     // why the mechanisms that come before it are not taken
	dir    *private.Dir // of the first session, until that begins
	cage   *cage        // the same session's
	tell   func(string) // what to do when commands turn out not to be confined; nil for nothing
}

// A NoRoomError: commands cannot be confined now for want of something that others
// may give back. None runs without.
type NoRoomError struct {
	Err     error
	Command bool // one command, of a session that others may have
}

func (e *NoRoomError) Error() string {
	if e.Command {
		return "there is no room for another command: " + e.Err.Error()
	}
	return "there is no room to confine the commands of another session: " + e.Err.Error()
}
func (*NoRoomError) Code() fault.Code { return fault.Unavailable }

func (e *NoRoomError) Unwrap() error { return e.Err }

// Hint says what to do about it.
func (e *NoRoomError) Hint() string {
	if e.Command {
		return "Try again when other commands have ended, and what they left running, or ask the user to give the server more descriptors (ulimit -n)."
	}
	return "Try again when other sessions have ended, or ask the user to give the server more (ulimit -n, ulimit -u, user.max_user_namespaces, memory), or to start it with --sandbox landlock, which needs no namespaces."
}

// noRoom makes it plain when a session's cage cannot be made although others were.
func noRoom(err error) error {
	if wanting(err) || errors.Is(err, syscall.ENOSPC) {
		return &NoRoomError{Err: err}
	}
	return err
}

// wanting reports whether an error is about what is used up now: it says nothing
// about what this machine permits.
func wanting(err error) bool {
	isAny := func(some ...error) bool {
		return slices.ContainsFunc(some, func(e error) bool { return errors.Is(err, e) })
	}
	return isAny(syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN) ||
		isAny(syscall.ENOSPC, syscall.EUSERS) && !forbidden(namespaceLimits)
}

// namespaceLimits are where Linux says how many namespaces there may be.
const namespaceLimits = "/proc/sys/user"

// forbidden reports whether there may be no namespaces of a kind that cages are
// made of, which the kernel tells like that there are too many.
func forbidden(limits string) bool {
	return slices.ContainsFunc([]string{"user", "mnt", "pid", "ipc", "net"}, func(kind string) bool {
		text, err := os.ReadFile(filepath.Join(limits, "max_"+kind+"_namespaces"))
		return err == nil && strings.TrimSpace(string(text)) == "0"
	})
}

// tiers lists the mechanisms that a mode accepts, the preferred first.
func (m Mode) tiers() []Tier {
	switch m {
	case Isolate:
		return []Tier{Namespaces}
	case Landlock:
		return []Tier{Threads}
	}
	return []Tier{Namespaces, Threads}
}

// tiers are those of the mode, but in a container, which forbids namespaces, auto does
// not try them.
func (c *confinement) tiers() []Tier {
	if c.cfg.inside != nil && (c.cfg.Sandbox == Auto || c.cfg.Sandbox == "") {
		return []Tier{Threads}
	}
	return c.cfg.Sandbox.tiers()
}

// proof reports whether a mode refuses commands unless a self-test has passed.
func (m Mode) proof() bool { return m == Strict || m == Landlock || m == Isolate }

// ready decides if that is still to be done, and tells why commands are not
// confined, nil when they are. An error that is not final is told, too, and the
// next call tries again.
func (c *confinement) ready() error {
	d := &c.decision
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.made {
		return d.err
	}
	err := c.decide(d)
	if notFinal(err) {
		return err
	}
	d.made, d.err = true, err
	if err != nil && d.tell != nil {
		d.tell(err.Error())
	}
	return err
}

// notFinal reports whether an error of ready leaves open how commands are confined.
func notFinal(err error) bool {
	var full *NoRoomError
	var homeless *PrivateDirError
	return errors.As(err, &full) || errors.As(err, &homeless) || ofWorkspace(err)
}

// ofWorkspace reports whether it is the workspace, as it is now, that cannot be guarded.
func ofWorkspace(err error) bool {
	var guard *confine.GuardError
	return errors.As(err, &guard)
}

// decide takes the first mechanism that proves itself. Auto takes one that only
// can be made rather than none.
func (c *confinement) decide(d *decision) error {
	_, _ = cgroup.Open() // before there are processes that it would have to move
	if err := c.foreseen(); err != nil {
		return err
	}
	begun := c.begin(c.tiers()[0])
	defer begun.Close()
	dir, err := c.newSessionDir(true)
	if err != nil {
		return err
	}
	if cache := c.cache(); cache != nil {
		dir.Cache = cache.Dir()
	}
	failed := c.take(d, cageFor{session: dir, begun: begun}, true)
	if d.cage == nil && !c.cfg.Sandbox.proof() && !wanting(failed) {
		_ = c.take(d, cageFor{session: dir}, false)
	}
	if d.cage != nil {
		return nil
	}
	dir.Remove()
	if wanting(failed) {
		return &NoRoomError{Err: failed}
	}
	return failed
}

// take makes the first session's cage in the first tier in which that works,
// proven if asked, and tells why the tiers before that one do not.
func (c *confinement) take(d *decision, f cageFor, proof bool) (failed error) {
	d.others = nil
	for _, d.tier = range c.tiers() {
		cage, err := c.try(f, proof)
		if err == nil {
			d.dir, d.cage = f.session, cage
			return failed
		}
		if wanting(err) {
			return err
		}
		d.others = append(d.others, fmt.Sprintf("%s: %v", d.tier, err))
		failed = joined(failed, err)
	}
	return failed
}

func (c *confinement) try(f cageFor, proof bool) (*cage, error) {
	cage, err := c.cage(f)
	if err != nil || !proof {
		return cage, err
	}
	if err := cage.SelfTest(); err != nil {
		_ = cage.Close()
		return nil, err
	}
	return cage, nil
}

// joined puts two reasons into one line.
func joined(first, second error) error {
	if first == nil {
		return second
	}
	return fmt.Errorf("%w; %w", first, second)
}

// foreseen tells why commands are certainly not confined, as far as that is known
// without trying anything.
func (c *confinement) foreseen() error {
	if c.cfg.Sandbox == Off {
		return errors.New("switched off with --sandbox off")
	}
	return confine.Foreseen()
}

// first hands the first session what was made to decide, nil when it has gone.
func (c *confinement) first() (*private.Dir, *cage) {
	d := &c.decision
	d.mu.Lock()
	defer d.mu.Unlock()
	dir, cage := d.dir, d.cage
	d.dir, d.cage = nil, nil
	return dir, cage
}

// confined tells whether commands are confined.
func (c *confinement) confined() bool { return c.ready() == nil }

// refuse returns the error that keeps any command from running, nil for none.
func (c *confinement) refuse() error {
	err := c.ready()
	if notFinal(err) && !ofWorkspace(err) {
		return err
	}
	if err != nil && c.cfg.Sandbox.proof() {
		return fmt.Errorf("%w: %w", ErrUnconfined, err)
	}
	return nil
}

// WhenUnconfined has tell called once when commands are not confined: now, where
// that is certain without trying, or as soon as it turns out at the first use.
func (c *Commands) WhenUnconfined(tell func(why string)) {
	if c.fleet != nil {
		return // the container confines them
	}
	if err := c.confinement.foreseen(); err != nil {
		tell(err.Error())
		return
	}
	d := &c.confinement.decision
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tell = tell; d.made && d.err != nil {
		tell(d.err.Error())
	}
}

// NotTaken tells why the mechanisms that the mode prefers to the one that
// confines commands are not taken, a sentence each.
func (c *Commands) NotTaken() []string {
	if !c.confinement.confined() {
		return nil
	}
	return c.confinement.decision.others
}
