package containers

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"github.com/perstack-ai/perstack-base/sandbox/internal/network"
	"github.com/perstack-ai/perstack-base/sandbox/internal/remote"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/environ"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/tree"
	"github.com/perstack-ai/perstack-base/sandbox/scratch"
)

// An Error: a command did not run, or did not come to its end, because of its
// container.
type Error struct {
	What string // what is wrong
	Way  string // what to do about it; sentences
	Err  error  // the cause; may be nil
}

func (e *Error) Error() string  { return e.What }
func (*Error) Code() fault.Code { return fault.Unavailable }

// Hint says what to do about it.
func (e *Error) Hint() string { return e.Way }

func (e *Error) Unwrap() error { return e.Err }

// A Config is what all containers of a server have in common.
type Config struct {
	Image, Engine         string
	Dir                   string // the workspace
	AllowRead, AllowWrite []string
	Network               network.Access
	Unconfined            bool // nothing but the container is to confine commands
	Limits                sandbox.Limits
	MaxMemory             int64   // bytes; 0: what the engine gives
	MaxCPUs               float64 // processors' worth of time; 0: what the engine gives
	MaxProcesses          int     // that commands may have
	Bounded               bool    // which was asked for

	Guard      *tree.Watchdog                            // of the trees, when the server dies
	Policy     func() policy.Policy                      // what may be looked at of this machine
	Repository func() environ.Repository                 // the workspace's own, if it lies outside
	NewTree    func() (path, canary string, err error)   // makes the directory in which sessions have theirs
	TreeAt     func(tree string) string                  // where a container has that
	Cache      func() *scratch.Cache                     // of the workspace, for this image; nil for none
	Hello      func(tree string, m Mounts) *remote.Hello // to a runner
}

// A Fleet is all containers of one server.
type Fleet struct {
	Silence time.Duration // how long an engine may say nothing before it runs a container

	Config
	engine *Engine

	bare  atomic.Bool // inside, nothing but the container confines commands
	sweep sync.Once
	ctx   context.Context // until close
	stop  context.CancelFunc

	mu     sync.Mutex
	shells uint64     // numbers given
	common *Container // of the sessions of a single call
	users  int        // of it
	idle   *time.Timer
	all    map[*Container]bool
}

// idleTime is how long a container that sessions share is kept for the next of them.
const idleTime = 10 * time.Minute

// New looks for the engine. No container is made yet.
func New(cfg Config) (*Fleet, error) {
	if err := checkImage(cfg.Image); err != nil {
		return nil, err
	}
	if err := checkPlaces(slices.Concat([]string{cfg.Dir}, cfg.AllowRead, cfg.AllowWrite)); err != nil {
		return nil, err
	}
	e, err := findEngine(cfg.Engine)
	if err != nil {
		return nil, err
	}
	if err := e.apartFrom(append([]string{cfg.Dir}, cfg.AllowWrite...)); err != nil {
		return nil, err
	}
	f := &Fleet{Config: cfg, engine: e, Silence: engineSilence, all: map[*Container]bool{}}
	f.ctx, f.stop = context.WithCancel(context.Background())
	return f, nil
}

// NextShell is a number that no other shell of the server has in a container.
func (f *Fleet) NextShell() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shells++
	return f.shells
}

// EngineSays is the command that runs containers, and what it calls itself once it was
// asked.
func (f *Fleet) EngineSays() string { return f.engine.Command + " (" + f.engine.Version + ")" }

// Over reports whether the fleet is closed.
func (f *Fleet) Over() bool { return f.ctx.Err() != nil }

// checkImage refuses what an engine would take for something else than an image.
func checkImage(image string) error {
	odd := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
	if strings.HasPrefix(image, "-") || strings.ContainsFunc(image, odd) {
		return fmt.Errorf("--container: %q is not the name of an image; name one as in --container python:3.12-slim", image)
	}
	return nil
}

// checkPlaces refuses places that a container has of its own.
func checkPlaces(paths []string) error {
	for _, path := range paths {
		switch clean := filepath.Clean(path); {
		case clean == "/", clean == "/dev", belowPath(clean, "/proc"), belowPath(clean, "/sys"):
			return fmt.Errorf("with --container, %s cannot be that of this machine, neither as the workspace nor by --allow-read or --allow-write: a container has its own", clean)
		}
	}
	return nil
}

// Close ends all containers that are left.
func (f *Fleet) Close() {
	if f == nil {
		return
	}
	f.stop()
	f.mu.Lock()
	var left []*Container
	for b := range f.all {
		left = append(left, b)
	}
	f.mu.Unlock()
	now := make(chan struct{})
	close(now)
	var all sync.WaitGroup
	for _, b := range left {
		all.Go(func() { b.End(0, now) })
	}
	all.Wait()
	if cache := f.Cache(); cache != nil {
		_ = cache.Close()
	}
}

// Share is the container that sessions of a single call have in common; nil when it
// does not have what a command needs.
func (f *Fleet) Share(reach, needs Places) *Container {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.common
	if b == nil || b.Over() {
		mounts := f.MountsFor(reach, Places{})
		if !mounts.Cover(needs) {
			return nil
		}
		b = f.launchLocked(mounts)
		b.Shared = true
		f.common, f.users = b, 0
	}
	if !b.Mounts.Cover(needs) {
		return nil
	}
	f.users++
	if f.idle != nil {
		f.idle.Stop()
	}
	return b
}

// release says that a session does not use a container any more.
func (f *Fleet) release(b *Container) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.common != b {
		return
	}
	if f.users--; f.users > 0 {
		return
	}
	f.idle = time.AfterFunc(idleTime, func() {
		f.mu.Lock()
		unused := f.common == b && f.users == 0
		if unused {
			f.common = nil
		}
		f.mu.Unlock()
		if unused {
			b.End(0, nil)
		}
	})
}

// Launch begins to make a container of one session; see [Container.Await].
func (f *Fleet) Launch(m Mounts) *Container {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.launchLocked(m)
}

// launchLocked begins to make a container. mu is held.
func (f *Fleet) launchLocked(m Mounts) *Container {
	b := &Container{fleet: f, Mounts: m, ready: make(chan struct{}), Ended: make(chan struct{}), words: &lastLines{}, Name: newContainerName()}
	b.ctx, b.give = context.WithCancelCause(f.ctx)
	f.all[b] = true
	f.sweep.Do(func() { go f.engine.sweep(f.ctx) })
	go b.open()
	return b
}

func (f *Fleet) forget(b *Container) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, b)
	if f.common == b {
		f.common = nil
	}
}

// errEndedMeanwhile: a container was ended before it ran.
var errEndedMeanwhile = errors.New("it was ended before it had begun")
