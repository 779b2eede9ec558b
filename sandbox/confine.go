package sandbox

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine"
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

// The tiers: see [confine.Confiner] and [confine.Isolator].
const (
	Threads    = confine.Threads
	Namespaces = confine.Namespaces
)

// ErrUnconfined: commands are refused because the mode is Strict, Landlock or
// Isolate and this machine does not confine them so. It comes wrapped with what is missing.
var ErrUnconfined = errors.New("commands are refused because they cannot be confined here")

// Harden is for the first lines of a server's main: what the process inherited
// does not reach commands, and its memory is not theirs to read.
func Harden() error { return confine.Harden() }

// Own keeps commands from connecting to the address of a listener of this
// program, where they could start what outlives them, until forget is called.
func Own(listener net.Addr) (forget func()) { return confine.Own(listener) }

// Exposed reports whether commands could connect to a listener of the server's
// although it is its own: in namespaces nobody judges who connects.
func (c *Commands) Exposed(listener net.Addr) bool {
	if !c.confinement.confined() || c.confinement.tier != Namespaces {
		return false
	}
	if at, ok := listener.(*net.UnixAddr); ok {
		dir, err := filepath.EvalSymlinks(filepath.Dir(at.Name))
		return err != nil || c.confinement.policy().Allows(filepath.Join(dir, filepath.Base(at.Name)), true)
	}
	return c.cfg.Network
}

// A confinement is the part of Commands that decides how far its commands are
// confined. It is asked once, when the server starts to say what commands may do.
type confinement struct {
	cfg   Config
	ready func() error // nil: commands are confined
	tier  Tier         // by which mechanism; set by ready

	once   sync.Once
	looked confine.Policy // see policy
	repo   repository     // the workspace's own, if it lies outside
}

func newConfinement(cfg Config) *confinement {
	c := &confinement{cfg: cfg}
	c.ready = sync.OnceValue(c.decide)
	return c
}

// policy is what all sessions have in common. It is looked up once, before the
// first command, and kept open: what commands do to names later changes nothing.
func (c *confinement) policy() confine.Policy {
	c.once.Do(func() {
		home, _ := getenv(c.cfg.Env, "HOME")
		path, _ := getenv(c.cfg.Env, "PATH")
		c.looked = confine.DefaultPolicy(confine.Inputs{
			Workspace: c.cfg.Dir, Home: home, Path: path, Users: true,
			AllowRead: c.cfg.AllowRead, AllowWrite: c.cfg.AllowWrite, Network: c.cfg.Network,
		}).Pin()
		if clean := cleanCargoConfigs(c.looked, home); len(clean) > 0 {
			c.looked, _ = c.looked.With(clean, nil, "settings of cargo, without secrets") // open until close
		}
		if repo, found := findRepository(c.cfg.Dir, c.looked); found {
			with, release := c.looked.With(repo.read, repo.write, "the workspace's own repository")
			if with.Straight(slices.Concat(repo.read, repo.write)) {
				c.repo, c.looked = repo, with // open until close
			} else { // somebody put a link there since it was judged
				release()
			}
		}
	})
	return c.looked
}

// close lets go of the policy. No session is left.
func (c *confinement) close() {
	c.once.Do(func() {})
	c.looked.Close()
}

// tiers lists the mechanisms that a mode accepts, the preferred first.
func (m Mode) tiers() []Tier {
	switch m {
	case Isolate:
		return []Tier{Namespaces}
	case Landlock:
		return []Tier{Threads}
	}
	return []Tier{Threads, Namespaces}
}

// proof reports whether a mode refuses commands unless a self-test has passed.
func (m Mode) proof() bool { return m == Strict || m == Landlock || m == Isolate }

// decide chooses the tier, and tells why commands are not confined, nil when they are.
func (c *confinement) decide() error {
	if c.cfg.Sandbox == Off {
		return errors.New("switched off with --sandbox off")
	}
	var reasons []string
	for _, c.tier = range c.cfg.Sandbox.tiers() {
		err := c.try()
		if err == nil {
			return nil
		}
		reasons = append(reasons, err.Error())
	}
	return errors.New(strings.Join(reasons, "; "))
}

// try makes a cage of the tier and, where proof is wanted, has it prove itself.
// Where it is not, whether the kernel offers threads their part is enough: the
// paths of the policy are looked at when the first command comes.
func (c *confinement) try() error {
	if c.tier == Threads && !c.cfg.Sandbox.proof() {
		made, err := jails[c.tier](confine.Isolation{})
		if err != nil {
			return err
		}
		return made.Close()
	}
	cage, err := c.cage(cageFor{})
	if err != nil {
		return err
	}
	defer cage.Close()
	if c.cfg.Sandbox.proof() {
		return cage.SelfTest()
	}
	return nil
}

// confined tells whether commands are confined.
func (c *confinement) confined() bool { return c.ready() == nil }

// refuse returns the error that keeps any command from running, nil for none.
func (c *confinement) refuse() error {
	if err := c.ready(); err != nil && c.cfg.Sandbox.proof() {
		return fmt.Errorf("%w: %w", ErrUnconfined, err)
	}
	return nil
}

// A cage is the confinement of one session: the policy with its private
// directories, ready for the kernel in one of the tiers.
type cage struct {
	jail
	policy confine.Policy
	own    []string // directories of the server's, which commands read at most
}

// A jail is a *confine.Confiner or a *confine.Isolator.
type jail interface {
	Status() Status
	SelfTest() error
	Close() error
}

// jails make one for each tier.
var jails = map[Tier]func(confine.Isolation) (jail, error){
	Threads:    func(in confine.Isolation) (jail, error) { return confine.New(in.Policy, confine.Options{}) },
	Namespaces: func(in confine.Isolation) (jail, error) { return confine.NewIsolator(in) },
}

// cageFor says whom a cage is for.
type cageFor struct {
	session     *sessionDir // nil for none
	read, write []string    // what its commands may reach besides
}

func (c *confinement) cage(f cageFor) (*cage, error) {
	read, write := f.read, f.write
	var files map[string]string
	if f.session != nil {
		read, write = append(slices.Clone(read), f.session.etc()), append(slices.Clone(write), f.session.tmp(), f.session.home())
		if f.session.cache != "" {
			write = append(write, f.session.cache)
		}
		if c.tier == Namespaces {
			files = map[string]string{"/etc/passwd": f.session.passwd(), "/etc/group": f.session.group()}
		}
	}
	policy, release := c.policy().With(read, write, "the session's own")
	defer release()
	made, err := jails[c.tier](confine.Isolation{Policy: policy, Workspace: c.cfg.Dir, Files: files, Guard: c.cfg.Sandbox == Isolate})
	if err != nil {
		return nil, err
	}
	return &cage{made, policy, f.own()}, nil
}

// own are the directories of the server's that the session's commands come across.
func (f cageFor) own() []string {
	if f.session == nil {
		return f.read
	}
	return append(slices.Clone(f.read), f.session.path)
}

// explain tells what the sandbox refused a command, a sentence each.
func (c *cage) explain(dir, stderr string, refusals []confine.Refusal) []string {
	_, hidden := c.jail.(*confine.Isolator)
	x := confine.Explainer{Policy: c.policy, Dir: dir, Private: c.own, Resolve: filepath.EvalSymlinks, Hidden: hidden}
	return x.Explain(stderr, refusals)
}

// explainProgram tells that a program lies outside of what commands may read, ""
// when that is not why it does not start.
func (c *cage) explainProgram(path string) string {
	if said := c.explain("/", path+": Permission denied", nil); len(said) > 0 {
		return said[0]
	}
	return ""
}

// Confined tells whether commands are confined by the kernel, and if not, why.
// Without a command so far it is a first look: little is tried out.
func (c *Commands) Confined() (ok bool, why string) {
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
	dir, err := c.confinement.newSessionDir()
	if err != nil {
		return Status{}, err
	}
	defer dir.remove()
	cage, err := c.confinement.cage(cageFor{session: dir})
	if err != nil {
		return Status{}, err
	}
	defer cage.Close()
	return cage.Status(), nil
}

// A Rule is one line of what commands may reach.
type Rule = confine.Rule

// DefaultRules are what commands may reach on every machine.
func DefaultRules() []Rule { return confine.DefaultRules() }

// Policy lists what commands may reach, a path a line with the reason; nothing
// when they are not confined.
func (c *Commands) Policy() []Rule {
	if !c.confinement.confined() {
		return nil
	}
	own := []string{"$TMPDIR", "$HOME"}
	if c.confinement.tier == Namespaces {
		own = append(own, "/tmp")
	}
	var rules []Rule
	for _, path := range own {
		rules = append(rules, Rule{Access: "write", Path: path, Reason: "the session's own, until it ends"})
	}
	return append(rules, c.confinement.policy().Rules()...)
}

// Rules says in a few sentences what commands may reach, for whoever writes them.
func (c *Commands) Rules() string {
	if ok, _ := c.Confined(); !ok {
		return "Commands run with the rights of the user who started the server: nothing confines them here."
	}
	rules := "Commands may write in the workspace and in $TMPDIR and $HOME, which are private and temporary, and read besides only the system's programs and libraries."
	if extra := append(append([]string{}, c.cfg.AllowRead...), c.cfg.AllowWrite...); len(extra) > 0 {
		rules = strings.TrimSuffix(rules, ".") + " and " + strings.Join(extra, ", ") + "."
	}
	if c.cfg.Network {
		return rules
	}
	return rules + " There is no network but servers on this machine that commands of this session start themselves."
}
