package process

import (
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/hints"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"github.com/perstack-ai/perstack-base/sandbox/internal/network"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/environ"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/home"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/private"
	"github.com/perstack-ai/perstack-base/sandbox/scratch"
)

// A Mode says how far commands are confined.
type Mode string

// The modes. The zero Mode is Auto.
const (
	Auto   Mode = "auto"   // by the kernel as far as it can; where it cannot, not, and that is said
	Strict Mode = "strict" // by the kernel, proven by a self-test; otherwise commands are refused
	Off    Mode = "off"    // not at all

	// Landlock: by Landlock and what goes with it, without namespaces; proven by a
	// self-test, otherwise commands are refused.
	Landlock Mode = "landlock"

	// Isolate: in namespaces, where nothing exists but what commands may reach;
	// proven by a self-test, otherwise commands are refused.
	Isolate Mode = "isolate"
)

// Modes lists them all.
var Modes = []Mode{Auto, Strict, Landlock, Isolate, Off}

// A Status says what a self-test proved of the confinement.
type Status = confine.Status

// A Check is one promise of a Status.
type Check = confine.Check

// A Tier is the mechanism that confines commands.
type Tier = confine.Tier

// The tiers: see [confine.New].
const (
	Threads    = confine.Threads
	Namespaces = confine.Namespaces
)

// ErrUnconfined: commands are refused because the mode is Strict, Landlock or
// Isolate and this machine does not confine them so. It comes wrapped with what is missing.
var ErrUnconfined = fault.New(fault.Unavailable, "commands are refused because they cannot be confined here")

// Harden is for the first lines of a server's main: what the process inherited
// does not reach commands, and its memory is not theirs to read.
func Harden() error { return confine.Harden() }

// Own keeps commands from connecting to the address of a listener of this
// program, where they could start what outlives them, until forget is called.
func Own(listener net.Addr) (forget func()) { return confine.Own(listener) }

// Exposed reports whether commands could connect to a listener of the server's
// although it is its own: in namespaces nobody judges who connects. Whether
// commands come to be there is not tried out.
func (c *Commands) Exposed(listener net.Addr) bool {
	if c.fleet != nil {
		at, ok := listener.(*net.UnixAddr)
		return !ok && c.cfg.Network.Open() || ok && !strings.HasPrefix(at.Name, "@") && c.exposes(at.Name)
	}
	if c.confinement.foreseen() != nil || !slices.Contains(c.cfg.Sandbox.tiers(), Namespaces) {
		return false
	}
	if at, ok := listener.(*net.UnixAddr); ok {
		return !strings.HasPrefix(at.Name, "@") && c.exposes(at.Name)
	}
	return c.cfg.Network.Open()
}

// exposes reports whether commands in namespaces could connect to a socket. Where
// they only read sockets are covered, but the kernel's list names one as it was
// bound: by a relative name it is not found there.
func (c *Commands) exposes(socket string) bool {
	path, err := filepath.Abs(socket)
	if err != nil {
		return true
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	return err != nil || c.confinement.policy().Allows(filepath.Join(dir, filepath.Base(path)), filepath.IsAbs(socket))
}

// A confinement is the part of Commands that decides how far its commands are
// confined.
type confinement struct {
	cfg      Config
	cache    func() *scratch.Cache // of the workspace; nil for none
	decision decision

	mu     sync.Mutex
	made   bool               // looked and repo are
	looked policy.Policy      // see policy
	repo   environ.Repository // the workspace's own, if it lies outside
}

// policy is what all sessions have in common. It is looked up once, before the
// first command, and kept open: what commands do to names later changes nothing.
// Where the system was short of descriptors for that, there is no first command, and
// it is looked up again.
func (c *confinement) policy() policy.Policy {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.made {
		c.looked, c.repo = c.lookUp()
		c.made = c.looked.Short() == nil
	}
	return c.looked
}

// lookUp makes the policy, which is open until close.
func (c *confinement) lookUp() (looked policy.Policy, repo environ.Repository) {
	userHome, _ := environ.Get(c.cfg.Env, "HOME")
	path, _ := environ.Get(c.cfg.Env, "PATH")
	looked = policy.DefaultPolicy(policy.Inputs{
		Workspace: c.cfg.Dir, Home: userHome, Path: path, Users: true,
		AllowRead: c.cfg.AllowRead, AllowWrite: c.cfg.AllowWrite, Network: c.cfg.Network.Open(),
	}).Pin()
	if looked.Short() != nil {
		looked.Close()
		return looked, repo
	}
	if clean := home.CleanCargoConfigs(looked, userHome); len(clean) > 0 {
		looked, _ = looked.With(clean, nil, "settings of cargo, without secrets")
	}
	if found, ok := environ.FindRepository(c.cfg.Dir, looked); ok {
		write := slices.Collect(maps.Keys(found.Write))
		with, release := looked.With(found.Read, write, found.Reason)
		if with.Straight(slices.Concat(found.Read, write)) {
			with.OfGit(found.Write)
			with.Repository = found.Common
			return with, found
		}
		release() // somebody put a link there since it was judged
	}
	return looked, repo
}

// repositoryEnv is env with what git needs of the workspace's repository.
func (c *confinement) repositoryEnv(env []string) []string {
	return c.repository().Env(env, c.cfg.Dir)
}

// repository is the workspace's own, if it lies outside.
func (c *confinement) repository() environ.Repository {
	c.policy()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.repo
}

// chose reports whether a mechanism was decided on, as far as there is a decision.
func (c *confinement) chose(tier Tier) bool {
	d := &c.decision
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.made && d.err == nil && d.tier == tier
}

// close lets go of the policy. No session is left.
func (c *confinement) close() {
	if dir, cage := c.first(); cage != nil {
		_ = cage.Close()
		dir.Remove()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made = true
	c.looked.Close()
}

// A cage is the confinement of one session: the policy with its private
// directories, ready for the kernel in one of the tiers.
type cage struct {
	confine.Jail
	policy policy.Policy
	tier   Tier
	gate   *network.Gate // nil: nothing but what the policy says of the network
	own    []string      // directories of the server's, which commands read at most
	made   int64         // what the policy's Changed said
}

// stale reports whether rules are missing for what was made since.
func (c *cage) stale() bool { return c.policy.Changed() != c.made }

// jails make one for each tier.
var jails = map[Tier]func(confine.Isolation) (confine.Jail, error){
	Threads:    func(in confine.Isolation) (confine.Jail, error) { return confine.New(Threads, in) },
	Namespaces: func(in confine.Isolation) (confine.Jail, error) { return confine.New(Namespaces, in) },
}

// cageFor says whom a cage is for.
type cageFor struct {
	session     *private.Dir // nil for none
	read, write []string     // what its commands may reach besides
	begun       *confine.Begun
}

// begin begins a cage of a tier. The caller closes what it returns.
func (c *confinement) begin(t Tier) *confine.Begun { return confine.Begin(t, c.cfg.Network.Open()) }

func (c *confinement) cage(f cageFor) (*cage, error) {
	read, write := f.read, f.write
	var files map[string]string
	if f.session != nil {
		read, write = append(slices.Clone(read), f.session.Etc()), append(slices.Clone(write), f.session.Tmp(), f.session.Home())
		if f.session.Cache != "" {
			write = append(write, f.session.Cache)
		}
		if c.decision.tier == Namespaces {
			files = map[string]string{"/etc/passwd": f.session.Passwd(), "/etc/group": f.session.Group()}
		}
	}
	gate := c.gate()
	if gate != nil && files != nil {
		names, err := f.session.LayNames()
		if err != nil {
			return nil, err
		}
		maps.Copy(files, names)
	}
	policy, release := c.policy().With(read, write, "the session's own")
	defer release()
	made, err := jails[c.decision.tier](confine.Isolation{Policy: policy, Workspace: c.cfg.Dir, Files: files, Guard: c.cfg.Sandbox == Isolate, Gate: gate, MaxMemory: c.cfg.Quota.MaxMemory, Begun: f.begun})
	if err != nil {
		return nil, err
	}
	return &cage{made, policy, c.decision.tier, gate, f.own(), policy.Changed()}, nil
}

// own are the directories of the server's that the session's commands come across.
func (f cageFor) own() []string {
	if f.session == nil {
		return f.read
	}
	return append(slices.Clone(f.read), f.session.Path)
}

// Close ends what runs there and what is relayed for it.
func (c *cage) Close() error {
	err := c.Jail.Close()
	if c.gate != nil {
		c.gate.Close()
	}
	return err
}

// mark is a place in the order of what the gate refuses.
func (c *cage) mark() uint64 {
	if c == nil || c.gate == nil {
		return 0
	}
	return c.gate.Mark()
}

// since is what the gate has refused since a mark, a sentence each.
func (c *cage) since(mark uint64) []string {
	if c.gate == nil {
		return nil
	}
	own := "blocked by the sandbox: network to " + strings.ToLower(private.Hostname()) + " ("
	return slices.DeleteFunc(c.gate.Refusals(mark), func(s string) bool {
		return strings.HasPrefix(s, own) // programs look up who they are on, git for one, and go on
	})
}

// explain tells what the sandbox refused a command, a sentence each: first what is
// said of it already.
func (c *cage) explain(dir, stderr string, said []string, refusals []hints.Refusal) []string {
	x := hints.Explainer{Policy: c.policy, Dir: dir, Private: c.own, Resolve: filepath.EvalSymlinks, Hidden: c.Jail.Space() != nil, Listens: hints.ListensOnLoopback,
		Said: said, Unjudged: c.tier == Threads && !c.Jail.Status().Broker}
	if c.gate != nil {
		x.Refuses = c.gate.Refuses
	}
	return x.Explain(stderr, refusals)
}

// explainProgram tells that a program lies outside of what commands may read, ""
// when that is not why it does not start.
func (c *cage) explainProgram(path string) string {
	if said := c.explain("/", path+": Permission denied", nil, nil); len(said) > 0 {
		return said[0]
	}
	return ""
}

// Confined tells whether commands are confined by the kernel, and if not, why.
// Before the first command that is tried out now.
func (c *Commands) Confined() (ok bool, why string) {
	if c.fleet != nil {
		return true, "" // by the container
	}
	if err := c.confinement.ready(); err != nil {
		return false, err.Error()
	}
	return true, ""
}

// SelfTest tries out what the sandbox promises and returns what held. The error
// says why nothing could be tried.
func (c *Commands) SelfTest() (Status, error) {
	if err := c.confinement.ready(); err != nil {
		return Status{}, err
	}
	dir, cage := c.confinement.first()
	if cage == nil {
		var err error
		if dir, err = c.confinement.newSessionDir(true); err != nil {
			return Status{}, err
		}
		if cage, err = c.confinement.cage(cageFor{session: dir}); err != nil {
			dir.Remove()
			return Status{}, err
		}
	}
	defer dir.Remove()
	defer cage.Close()
	return cage.Status(), nil
}

// A Rule is one line of what commands may reach.
type Rule = policy.Rule

// DefaultRules are what commands may reach on every machine.
func DefaultRules() []Rule { return policy.DefaultRules() }

// Policy lists what commands may reach, a path a line with the reason; nothing
// when they are not confined.
func (c *Commands) Policy() []Rule {
	if !c.confinement.confined() {
		return nil
	}
	own := []string{"$TMPDIR", "$HOME"}
	if c.confinement.decision.tier == Namespaces {
		own = append(own, "/tmp")
	}
	var rules []Rule
	for _, path := range own {
		rules = append(rules, Rule{Access: "write", Path: path, Reason: "the session's own, until it ends"})
	}
	return append(rules, c.confinement.policy().Rules()...)
}

// Rules says in a few sentences what commands may reach, for whoever writes them.
// Nothing is tried out for that: the sentences are true however the kernel
// confines commands.
func (c *Commands) Rules() string {
	if c.fleet != nil {
		return c.containerRules()
	}
	if c.confinement.foreseen() != nil {
		if c.cfg.Sandbox.proof() {
			return "Commands are refused here: nothing can confine them on this system."
		}
		return "Commands run with the rights of the user who started the server: nothing confines them here."
	}
	rules := "Commands may write in the workspace and in $TMPDIR and $HOME, private and temporary, and read besides only the system's programs and libraries."
	if extra := append(append([]string{}, c.cfg.AllowRead...), c.cfg.AllowWrite...); len(extra) > 0 {
		rules = strings.TrimSuffix(rules, ".") + " and " + strings.Join(extra, ", ") + "."
	}
	rules += c.cfg.Network.Sentence()
	if !c.cfg.Sandbox.proof() && !confine.Offered() {
		rules += " Keep to this also where the kernel of this machine cannot enforce it."
	}
	return rules
}
