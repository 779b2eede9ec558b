package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/perstack-ai/perstack-base/sandbox/internal/remote"
	"github.com/perstack-ai/perstack-base/sandbox/internal/settings"
	"github.com/perstack-ai/perstack-base/sandbox/scratch"
)

// A Container says in containers of which image commands run. The zero value: in none.
type Container struct {
	Image  string
	Engine string // the command that runs containers: docker, podman, nerdctl or a path; "" means docker
}

// A ContainerError: a command did not run, or did not come to its end, because of its
// container.
type ContainerError struct {
	What string // what is wrong
	Way  string // what to do about it; sentences
	Err  error  // the cause; may be nil
}

func (e *ContainerError) Error() string { return e.What }

// Hint says what to do about it.
func (e *ContainerError) Hint() string { return e.Way }

func (e *ContainerError) Unwrap() error { return e.Err }

// A fleet is all containers of one server.
type fleet struct {
	c      *Commands
	engine *engine
	cache  func() *scratch.Cache // of the workspace, for this image; nil for none
	treeAt func(tree string) string

	startTime time.Duration // how long a runner may take to start a command that goes on
	silence   time.Duration // how long an engine may say nothing before it runs a container

	bare  atomic.Bool // inside, nothing but the container confines commands
	sweep sync.Once
	ctx   context.Context // until close
	stop  context.CancelFunc

	mu     sync.Mutex
	shells uint64     // numbers given
	common *container // of the sessions of a single call
	users  int        // of it
	idle   *time.Timer
	all    map[*container]bool
}

// idleTime is how long a container that sessions share is kept for the next of them.
const idleTime = 10 * time.Minute

// startTime is how long a runner may take to start a command that goes on. One that
// works takes milliseconds.
const startTime = time.Minute

func newFleet(c *Commands) (*fleet, error) {
	if len(c.cfg.Network.Rules()) > 0 && c.cfg.Sandbox == Off {
		return nil, errors.New("--sandbox off leaves nobody in a container to keep the rules of --network; take --network deny or allow, or another --sandbox")
	}
	if err := checkImage(c.cfg.Container.Image); err != nil {
		return nil, err
	}
	if err := checkPlaces(slices.Concat([]string{c.cfg.Dir}, c.cfg.AllowRead, c.cfg.AllowWrite)); err != nil {
		return nil, err
	}
	e, err := findEngine(c.cfg.Container.Engine)
	if err != nil {
		return nil, err
	}
	if err := e.apartFrom(append([]string{c.cfg.Dir}, c.cfg.AllowWrite...)); err != nil {
		return nil, err
	}
	f := &fleet{c: c, engine: e, treeAt: treeInside, startTime: startTime, silence: engineSilence, all: map[*container]bool{}}
	f.cache = sync.OnceValue(f.openCache)
	f.ctx, f.stop = context.WithCancel(context.Background())
	return f, nil
}

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

// close ends all containers that are left.
func (f *fleet) close() {
	if f == nil {
		return
	}
	f.stop()
	f.mu.Lock()
	var left []*container
	for b := range f.all {
		left = append(left, b)
	}
	f.mu.Unlock()
	now := make(chan struct{})
	close(now)
	var all sync.WaitGroup
	for _, b := range left {
		all.Go(func() { b.end(0, now) })
	}
	all.Wait()
	if cache := f.cache(); cache != nil {
		_ = cache.Close()
	}
}

// openCache opens the cache of the workspace for this image: what one image has built
// is of no use to another, nor to this machine.
func (f *fleet) openCache() *scratch.Cache {
	if f.c.cfg.NoCache || f.ctx.Err() != nil {
		return nil
	}
	trees := scratch.NewWorkdirs(f.c.cfg.Dir, f.c.cfg.AllowWrite...)
	trees.Variant = f.c.cfg.Container.Image
	cache, err := scratch.OpenCache(trees)
	if err != nil {
		return nil
	}
	go trees.SweepCaches()
	return cache
}

// share is the container that sessions of a single call have in common; nil when it
// does not have what a command needs.
func (f *fleet) share(reach, needs Places) *container {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.common
	if b == nil || b.over() {
		mounts := f.mountsFor(reach, Places{})
		if !mounts.cover(needs) {
			return nil
		}
		b = f.launchLocked(mounts)
		b.shared = true
		f.common, f.users = b, 0
	}
	if !b.mounts.cover(needs) {
		return nil
	}
	f.users++
	if f.idle != nil {
		f.idle.Stop()
	}
	return b
}

// release says that a session does not use a container any more.
func (f *fleet) release(b *container) {
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
			b.end(0, nil)
		}
	})
}

func (f *fleet) launch(m mounts) *container {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.launchLocked(m)
}

// launchLocked begins to make a container. mu is held.
func (f *fleet) launchLocked(m mounts) *container {
	b := &container{fleet: f, mounts: m, ready: make(chan struct{}), ended: make(chan struct{}), words: &lastLines{}, name: newContainerName()}
	b.ctx, b.give = context.WithCancelCause(f.ctx)
	f.all[b] = true
	f.sweep.Do(func() { go f.engine.sweep(f.ctx) })
	go b.open()
	return b
}

func (f *fleet) forget(b *container) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, b)
	if f.common == b {
		f.common = nil
	}
}

// startup is what a program shall read first, with the files of the host that belong
// to it; nil for nothing.
func (f *fleet) startup(u *Startup) *remote.Startup {
	if u == nil {
		return nil
	}
	cfg := f.c.cfg
	files := u.copies(f.c.confinement.policy(), func(name, value string) bool { return withheld(name, value, cfg.PassEnv) })
	return &remote.Startup{Var: u.Var, InDir: u.InDir, Files: toFiles(append([]settings.File{{Name: u.Name, Text: u.Text}}, files...))}
}

// homeInside stands for a session's HOME in the user's settings: where it lies is for
// the runner to say.
const homeInside = "/run/perstack-base/home"

// hello tells a runner what its commands have in common.
func (f *fleet) hello(b *container) *remote.Hello {
	cfg := f.c.cfg
	env := FilterEnv(cfg.Env, cfg.PassEnv)
	if !cfg.Network.Open() {
		env = withoutProxies(env)
	}
	h := &remote.Hello{
		Version: remote.Version, Workspace: remote.Raw(cfg.Dir), Tree: remote.Raw(f.treeAt(b.tree)), Sandbox: string(cfg.Sandbox), Network: cfg.Network.String(),
		Write: remote.Raws(b.mounts.writable()), Env: remote.Raws(hostVariables(env)), Limits: jsonOf(f.c.limits), Quota: jsonOf(f.c.cfg.Quota), Home: homeInside,
	}
	if cache := f.cache(); cache != nil {
		h.Cache = remote.Raw(cache.Dir())
	}
	if home, ok := getenv(cfg.Env, "HOME"); ok && home != "" {
		h.Settings = toFiles(f.c.settings(home, homeInside).Files)
	}
	return h
}

// treeInside is where a container has that: not in /tmp, where every command may
// write, for commands read of it what others are started with.
func treeInside(tree string) string { return "/" + filepath.Base(tree) }

// newTree makes the directory in which sessions of a container have theirs, with the
// canary, and returns what that says.
func (f *fleet) newTree() (path, canary string, err error) {
	place := f.c.confinement.privatePlace(true)
	if place == "" {
		return "", "", &PrivateDirError{Dir: os.TempDir(), Err: errExposed}
	}
	path, err = os.MkdirTemp(place, privatePrefix)
	if err != nil {
		return "", "", &PrivateDirError{Dir: place, Err: err}
	}
	if path, err = filepath.Abs(path); err == nil {
		canary = randomName(16)
		err = os.WriteFile(filepath.Join(path, canaryName), []byte(canary), 0o400)
	}
	return path, canary, err
}

// errEndedMeanwhile: a container was ended before it ran.
var errEndedMeanwhile = errors.New("it was ended before it had begun")
