package process

import (
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/internal/cgroup"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/containers"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/environ"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/home"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/private"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/tree"
	"github.com/perstack-ai/perstack-base/sandbox/process/quota"
	"github.com/perstack-ai/perstack-base/sandbox/scratch"
)

// A Config is what all commands of a server have in common.
type Config struct {
	Dir        string         // the workspace: absolute, links resolved
	Limits     sandbox.Limits // zero fields mean their defaults
	Env        []string       // the host's environment; nil means this process's
	PassEnv    []string       // shell patterns of names that are passed on although they look secret
	Sandbox    Mode           // how far commands are confined
	Network    Network        // what of the network commands may use
	AllowRead  []string       // absolute paths that commands may read besides
	AllowWrite []string       // absolute paths that commands may write besides
	NoCache    bool           // what tools keep for later ends with the session
	Quota      quota.Limits   // what the commands of one session may use together

	Container Container // where commands run; the zero value: on this machine

	// Log gets a line for each connection that Network has rules for; nil = silent.
	Log *slog.Logger

	inside *inside // of a runner; nil outside of containers
}

// host is what decides the environment of commands.
func (cfg Config) host() environ.Host {
	return environ.Host{Env: cfg.Env, Pass: cfg.PassEnv, Network: cfg.Network, Writable: append([]string{cfg.Dir}, cfg.AllowWrite...)}
}

// Commands is the part that all sessions of one server share.
type Commands struct {
	cfg    Config
	limits sandbox.Limits
	base   func(confined bool) []string // of the host's environment, filtered once
	null   *os.File
	guard  *tree.Watchdog
	rules  *quota.Rules
	leave  sync.Once // the control groups, after the last commands of this program
	forget func()    // no orphan concerns these commands any more

	apart     registry          // what StartApart has started
	fleet     *containers.Fleet // the containers in which commands run; nil: on this machine
	startTime time.Duration     // how long a runner may take to start a command that goes on

	confinement *confinement
	cache       func() *scratch.Cache // of the workspace where commands are confined; nil for none

	mu     sync.Mutex
	shells map[*Shell]bool
	ended  bool
	opened *scratch.Cache // by cache
}

// startTime is how long a runner may take to start a command that goes on. One that
// works takes milliseconds.
const startTime = time.Minute

// openCommands are those of this program that are not closed.
var openCommands atomic.Int32

// NewCommands prepares to run commands in cfg.Dir. Nothing is started yet.
func NewCommands(cfg Config) (*Commands, error) {
	if err := cfg.Quota.Check(); err != nil {
		return nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	if cfg.Env == nil {
		cfg.Env = os.Environ()
	}
	c := &Commands{cfg: cfg, limits: cfg.Limits.WithDefaults(), null: null, guard: new(tree.Watchdog), startTime: startTime,
		shells: map[*Shell]bool{}}
	c.apart.limits = c.limits
	c.rules = c.newRules()
	c.cache = sync.OnceValue(c.openCache)
	c.confinement = &confinement{cfg: cfg, cache: c.cache, guard: c.guard}
	within := sync.OnceValue(func() []string { return c.confinement.repositoryEnv(environ.ForContainer(cfg.host())) })
	free := sync.OnceValue(func() []string { return environ.ForCommands(cfg.host(), false) })
	confined := sync.OnceValue(func() []string {
		return c.confinement.repositoryEnv(environ.ForCommands(cfg.host(), true))
	})
	away := sync.OnceValue(func() []string { return environ.ForCommands(cfg.host(), true) })
	c.base = func(walls bool) []string {
		switch {
		case cfg.inside != nil:
			return within()
		case c.fleet != nil: // a container gets its own
			return away()
		case walls:
			return confined()
		}
		return free()
	}
	c.confinement.furnish = func(dir *private.Dir) []string {
		defer c.guard.Start() // soon it is told of the directory
		return c.equip(dir, true)
	}
	if os.Getpid() == 1 {
		proc.Adopt() // orphans of others come here as well
	}
	if cfg.Container.Image != "" {
		proc.Adopt() // those of engines
		if c.fleet, err = c.newFleet(); err != nil {
			_ = null.Close()
			return nil, err
		}
	}
	c.forget = proc.OnReap(c.prune)
	openCommands.Add(1)
	return c, nil
}

// Env is the environment that commands start from, without the private
// directories of a session. The caller must not change it.
func (c *Commands) Env() []string { return c.env() }

// env is Env. Where others confine commands nothing is tried out for it.
func (c *Commands) env() []string {
	return c.base(c.cfg.inside == nil && c.fleet == nil && c.confinement.confined())
}

// Withheld lists the names of the host's variables that commands do not get.
func (c *Commands) Withheld() []string { return environ.WithheldNames(c.cfg.Env, c.cfg.PassEnv) }

// LeftOut names what commands do not get of the user's settings, because it looks
// like a secret or is not known to be harmless: "~/.npmrc: //host/:_authToken".
func (c *Commands) LeftOut() []string {
	own, _ := environ.Get(c.cfg.Env, "HOME")
	if own == "" || c.fleet == nil && !c.confinement.confined() {
		return nil
	}
	return home.Settings(c.confinement.policy(), own, own).Left
}

// equip fills the HOME of a new session, if it is to be a private one, and returns the
// environment that leads tools to what they have there, and to the cache.
func (c *Commands) equip(d *private.Dir, confined bool) []string {
	env := c.base(confined)
	if in := c.cfg.inside; in != nil {
		return home.EquipWith(d, env, in.files, in.home, in.cache)
	}
	if !confined {
		return env
	}
	host := c.cfg.host()
	p := c.confinement.policy()
	host.Reach, host.Safe = p.Reach, p.Safe
	env = home.Equip(d, env, home.User{Host: host, Policy: p})
	return environ.AddMissing(env, []string{"APT_CONFIG=" + filepath.Join(d.Path, private.AptConf)})
}

// NewShell begins a session. It costs nothing before its first command.
func (c *Commands) NewShell() *Shell { return c.newShell(false) }

// NewCallShell begins a session for a single call. Where commands run in containers,
// such sessions share one.
func (c *Commands) NewCallShell() *Shell { return c.newShell(true) }

func (c *Commands) newShell(single bool) *Shell {
	s := &Shell{c: c, ending: make(chan struct{}), now: make(chan struct{}), running: map[*job]bool{}, held: registry{limits: c.limits}}
	if c.fleet != nil {
		s.away = &away{fleet: c.fleet, shares: single}
	}
	c.mu.Lock()
	c.shells[s] = true
	ended := c.ended
	c.mu.Unlock()
	if ended {
		s.Terminate()
	}
	return s
}

func (c *Commands) open() []*Shell {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*Shell, 0, len(c.shells))
	for s := range c.shells {
		all = append(all, s)
	}
	return all
}

func (c *Commands) prune() {
	for _, s := range c.open() {
		s.prune()
	}
}

// openCache opens the cache of the workspace; nil where there is none: commands have
// a private one then, for as long as their session.
func (c *Commands) openCache() *scratch.Cache {
	if c.cfg.NoCache {
		return nil
	}
	trees := scratch.NewWorkdirs(c.cfg.Dir, c.cfg.AllowWrite...) // which makes nothing where commands can write
	cache, err := scratch.OpenCache(trees)
	if err != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		_ = cache.Close()
		return nil
	}
	c.opened = cache
	go trees.SweepCaches()
	return cache
}

func (c *Commands) closeCache() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opened != nil {
		_ = c.opened.Close()
	}
}

// Terminate is for the end of the server's input: running commands get SIGTERM
// at once and are reported as cancelled, others are refused with ErrEnding.
func (c *Commands) Terminate() {
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	for _, s := range c.open() {
		s.Terminate()
	}
}

// Kill is Terminate without the grace period.
func (c *Commands) Kill() {
	c.Terminate()
	for _, s := range c.open() {
		s.Kill()
	}
}

// Close closes every session, at the same time, and frees everything.
func (c *Commands) Close() error {
	c.Terminate()
	var all sync.WaitGroup
	for _, s := range c.open() {
		all.Go(func() { _ = s.Close() })
	}
	all.Wait()
	c.apart.close()
	c.fleet.Close()
	c.forget()
	c.closeCache()
	c.confinement.close()
	c.guard.Close()
	c.rules.Reserve.Close()
	c.leave.Do(func() {
		if openCommands.Add(-1) == 0 {
			cgroup.Leave()
		}
	})
	return c.null.Close()
}

// FilterEnv returns env without the variables that commands do not get: what looks
// secret and is not named by pass.
func FilterEnv(env, pass []string) []string { return environ.Filter(env, pass) }

// Helpers must be the first call of main (and of TestMain): in the process that a
// [Commands] starts to end all commands when the server has died, however it died,
// it does that work and never returns, in every other it returns at once.
func Helpers() { tree.Helpers() }
