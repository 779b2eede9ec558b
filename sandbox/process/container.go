package process

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/remote"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/containers"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/environ"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/home"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/private"
	"github.com/perstack-ai/perstack-base/sandbox/scratch"
)

// A Container says in containers of which image commands run. The zero value: in none.
type Container struct {
	Image  string
	Engine string // the command that runs containers: docker, podman, nerdctl or a path; "" means docker
}

// DefaultEngine is the command that runs containers when none is named.
const DefaultEngine = containers.DefaultEngine

// RunnerCommand is the subcommand by which a program has [ServeRunner] run.
const RunnerCommand = containers.RunnerCommand

// ErrNoEngine: there is no such command. It comes in a *ContainerError.
var ErrNoEngine = containers.ErrNoEngine

// Places are what commands reach in a container besides the workspace.
type Places = containers.Places

// A ContainerError: a command did not run, or did not come to its end, because of its
// container.
type ContainerError = containers.Error

// newFleet prepares to run commands in containers.
func (c *Commands) newFleet() (*containers.Fleet, error) {
	if len(c.cfg.Network.Rules()) > 0 && c.cfg.Sandbox == Off {
		return nil, errors.New("--sandbox off leaves nobody in a container to keep the rules of --network; take --network deny or allow, or another --sandbox")
	}
	cfg := c.cfg
	var f *containers.Fleet
	cache := sync.OnceValue(func() *scratch.Cache {
		if f.Over() {
			return nil
		}
		return c.openImageCache()
	})
	f, err := containers.New(containers.Config{
		Image: cfg.Container.Image, Engine: cfg.Container.Engine,
		Dir: cfg.Dir, AllowRead: cfg.AllowRead, AllowWrite: cfg.AllowWrite, Network: cfg.Network, Unconfined: cfg.Sandbox == Off, Limits: c.limits,
		MaxMemory: cfg.Quota.MaxMemory, MaxCPUs: cfg.Quota.MaxCPUs, MaxProcesses: cmp.Or(cfg.Quota.MaxProcesses, c.limits.Processes), Bounded: cfg.Quota.MaxProcesses > 0,
		Guard: c.guard, Policy: c.confinement.policy, Repository: c.confinement.repository, NewTree: c.confinement.newTree,
		TreeAt: treeInside, Cache: cache, Hello: func(tree string, m containers.Mounts) *remote.Hello { return c.hello(f.TreeAt(tree), m, f.Cache()) },
	})
	return f, err
}

// openImageCache opens the cache of the workspace for this image: what one image has built
// is of no use to another, nor to this machine.
func (c *Commands) openImageCache() *scratch.Cache {
	if c.cfg.NoCache {
		return nil
	}
	trees := scratch.NewWorkdirs(c.cfg.Dir, c.cfg.AllowWrite...)
	trees.Variant = c.cfg.Container.Image
	cache, err := scratch.OpenCache(trees)
	if err != nil {
		return nil
	}
	go trees.SweepCaches()
	return cache
}

// remoteStartup is what a program shall read first, with the files of the host that belong
// to it; nil for nothing.
func (c *Commands) remoteStartup(u *Startup) *remote.Startup {
	if u == nil {
		return nil
	}
	cfg := c.cfg
	files := u.all(c.confinement.policy(), func(name, value string) bool { return environ.Withheld(name, value, cfg.PassEnv) })
	return &remote.Startup{Var: u.Var, InDir: u.InDir, Files: toFiles(files)}
}

// homeInside stands for a session's HOME in the user's settings: where it lies is for
// the runner to say.
const homeInside = "/run/perstack-base/home"

// hello tells a runner what its commands have in common.
func (c *Commands) hello(tree string, m containers.Mounts, cache *scratch.Cache) *remote.Hello {
	cfg := c.cfg
	env := environ.Filter(cfg.Env, cfg.PassEnv)
	if !cfg.Network.Open() {
		env = environ.WithoutProxies(env)
	}
	h := &remote.Hello{
		Version: remote.Version, Workspace: remote.Raw(cfg.Dir), Tree: remote.Raw(tree), Sandbox: string(cfg.Sandbox), Network: cfg.Network.String(),
		Write: remote.Raws(m.Writable()), Env: remote.Raws(environ.HostVariables(env)), Limits: jsonOf(c.limits), Quota: jsonOf(cfg.Quota), Home: homeInside,
	}
	if cache != nil {
		h.Cache = remote.Raw(cache.Dir())
	}
	if own, ok := environ.Get(cfg.Env, "HOME"); ok && own != "" {
		h.Settings = toFiles(home.Settings(c.confinement.policy(), own, homeInside).Files)
	}
	return h
}

// treeInside is where a container has that: not in /tmp, where every command may
// write, for commands read of it what others are started with.
func treeInside(tree string) string { return "/" + filepath.Base(tree) }

// newTree makes the directory in which sessions of a container have theirs, with the
// canary, and returns what that says.
func (c *confinement) newTree() (path, canary string, err error) {
	place := c.privatePlace(true)
	if place == "" {
		return "", "", &PrivateDirError{Dir: os.TempDir(), Err: errExposed}
	}
	path, err = os.MkdirTemp(place, private.Prefix)
	if err != nil {
		return "", "", &PrivateDirError{Dir: place, Err: err}
	}
	if path, err = filepath.Abs(path); err == nil {
		canary = rand.Text()
		err = os.WriteFile(filepath.Join(path, canaryName), []byte(canary), 0o400)
	}
	return path, canary, err
}

func jsonOf(v any) json.RawMessage {
	text, _ := json.Marshal(v) // numbers
	return text
}

// A ContainerStatus is what a container turned out to be.
type ContainerStatus struct {
	Image    string        `json:"image"`
	Engine   string        `json:"engine"`   // the command, and what it calls itself
	Confined string        `json:"confined"` // by what commands are confined inside; "" for nothing but the container
	Why      string        `json:"why,omitempty"`
	Machine  string        `json:"machine"`   // GOOS/GOARCH of its runner
	Start    time.Duration `json:"startTime"` // until it was ready
	Mounts   []Rule        `json:"mounts"`    // the places of this machine that it has
}

// Contained reports whether commands run in containers.
func (c *Commands) Contained() bool { return c.fleet != nil }

// TryContainer makes a container as a session does, and ends it again.
func (c *Commands) TryContainer(ctx context.Context) (ContainerStatus, error) {
	began := time.Now()
	f := c.fleet
	b := f.Launch(f.MountsFor())
	defer b.End(0, nil)
	if err := b.Await(ctx, nil); err != nil {
		return ContainerStatus{}, err
	}
	s := ContainerStatus{
		Image: c.cfg.Container.Image, Engine: f.EngineSays(),
		Confined: remote.Clip(b.Welcome.Confined), Why: remote.Clip(b.Welcome.Why), Machine: remote.Clip(b.Welcome.Machine), Start: time.Since(began),
	}
	for _, m := range b.Mounts {
		rule := Rule{Access: "read", Path: m.At, Reason: "mounted for commands"}
		if m.Write {
			rule.Access = "write"
		}
		s.Mounts = append(s.Mounts, rule)
	}
	return s, nil
}

// containerRules says in a few sentences what commands may reach, for whoever writes them.
func (c *Commands) containerRules() string {
	cfg := c.cfg
	rules := "Commands run in a container of the image " + cfg.Container.Image + ", which has the workspace where file tools see it; they may write there, in /tmp and in $TMPDIR and $HOME, which are private and temporary, and nowhere else."
	if extra := append(append([]string{}, cfg.AllowRead...), cfg.AllowWrite...); len(extra) > 0 {
		rules += " It has besides " + strings.Join(extra, ", ") + "."
	}
	return rules + strings.ReplaceAll(cfg.Network.Sentence(), "servers on this machine that", "servers that")
}
