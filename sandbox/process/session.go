package process

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/environ"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/home"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/private"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/tree"
)

// A session is the private directory of one Shell, and the cage of its commands.
// Both are made at the first command.
type session struct {
	mu  sync.Mutex
	dir *private.Dir
	tmp string
	env []string // the host's, with the private directories

	cage    *cage            // nil: commands are not confined
	wider   map[string]*cage // for commands with rights of their own, by those rights
	retired []*cage          // of directories that are gone; commands may still run in them
}

// open makes the directories, also again when somebody removed them, and returns
// the cage for the next command, nil where commands are not confined.
func (s *session) open(c *Commands, read, write []string) (*cage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.make(c); err != nil {
		return nil, err
	}
	if s.cage == nil || len(read)+len(write) == 0 {
		return s.cage, nil
	}
	key := fmt.Sprintf("%q %q", read, write)
	if cage := s.wider[key]; cage != nil && cage.Fallen() {
		_ = cage.Close()
		delete(s.wider, key)
	}
	if s.wider[key] == nil {
		if err := sessionRoom(c.null); err != nil {
			return nil, noRoom(err)
		}
		cage, err := c.confinement.cage(cageFor{session: s.dir, read: read, write: write})
		if err != nil {
			return nil, noRoom(err)
		}
		s.retire(maxWider)
		s.wider[key] = cage
	}
	return s.wider[key], nil
}

// maxWider bounds the cages that wait for more commands with the same rights.
const maxWider = 8

// retire sets the wider cages aside when there are that many, and makes room for one.
func (s *session) retire(many int) {
	if len(s.wider) >= many {
		s.retired = slices.AppendSeq(s.retired, maps.Values(s.wider))
		s.wider = nil
	}
	if s.wider == nil {
		s.wider = map[string]*cage{}
	}
}

func (s *session) make(c *Commands) error {
	if err := c.confinement.refuse(); err != nil {
		return err
	}
	if s.cage != nil && s.cage.Fallen() {
		s.unguarded()
	}
	if s.dir != nil && s.dir.Whole() {
		if s.cage != nil && !s.cage.stale() || !c.confinement.confined() {
			return nil // where making the cage failed, it is tried again: nothing runs without
		}
		return s.confine(c, nil, nil)
	}
	var cage *cage
	var begun *confine.Begun
	if s.dir == nil || s.dir.Fill() != nil {
		dir, first, err := c.newSession()
		if err != nil {
			return err
		}
		if cage = first; cage == nil && c.confinement.confined() {
			begun = c.confinement.begin(c.confinement.decision.tier)
			defer begun.Close()
		}
		s.removeDir(c.guard)
		s.dir, s.tmp = dir, dir.Tmp()
		env := c.env()
		if in := c.cfg.inside; in != nil {
			env = home.EquipWith(dir, env, in.files, in.home, in.cache)
		} else if c.confinement.confined() {
			env = environ.AddMissing(c.equip(dir, env), []string{"APT_CONFIG=" + filepath.Join(dir.Path, private.AptConf)})
		}
		s.env = s.private(env, c.confinement.confined() || c.cfg.inside != nil)
		if c.confinement.confined() && c.confinement.decision.tier == Threads && c.cfg.inside == nil {
			s.env = javaTemp(s.env, s.tmp) // in namespaces /tmp is the session's own
		}
		c.guard.DirBegins(dir.Path)
	}
	return s.confine(c, cage, begun)
}

// sessionRoom leaves descriptors for connections, and for the commands of the sessions
// that are there, when another session asks for its own.
func sessionRoom(open *os.File) error { return proc.DescriptorRoom(open, 128, 4) }

// newSession makes the directory of a session. The first one has a cage already.
func (c *Commands) newSession() (*private.Dir, *cage, error) {
	confined := c.confinement.confined()
	if dir, cage := c.confinement.first(); cage != nil {
		return dir, cage, nil
	}
	if confined {
		if err := sessionRoom(c.null); err != nil {
			return nil, nil, noRoom(err)
		}
	}
	dir, err := c.confinement.newSessionDir(confined)
	return dir, nil, err
}

// confine makes the session's cage, unless it is given, of what was begun. A directory
// that was made again is another one to the kernel, so its cage is made again too.
func (s *session) confine(c *Commands, made *cage, begun *confine.Begun) (err error) {
	if !c.confinement.confined() {
		return nil
	}
	if s.cage != nil {
		s.retired = append(s.retired, s.cage)
	}
	s.retire(0)
	if s.cage = made; made == nil {
		s.cage, err = c.confinement.cage(cageFor{session: s.dir, begun: begun})
	}
	return noRoom(err)
}

// unguarded ends what runs where the guard of the repository has fallen, which would
// write what git runs for its user, or where nothing can run any more.
func (s *session) unguarded() {
	s.retire(0)
	for _, cage := range append(s.retired, s.cage) {
		_ = cage.Close()
	}
	s.cage, s.retired = nil, nil
}

// mark is the TMPDIR by which processes of the session are known, empty before the first command.
func (s *session) mark() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tmp
}

// confined tells whether the session's commands were.
func (s *session) confined() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cage != nil
}

// private returns env with TMPDIR, and HOME if asked, in the session's directory.
func (s *session) private(env []string, home bool) []string {
	set := map[string]string{"TMPDIR": s.tmp}
	if runtime.GOOS == "windows" {
		set = map[string]string{"TMP": s.tmp, "TEMP": s.tmp}
	}
	if home {
		set["HOME"] = s.dir.Home()
		env = s.privateTerminals(env, set)
	}
	return environ.Merge(env, set)
}

// privateTerminals has tmux and screen keep their sockets in TMPDIR, and others what the
// XDG standard has for it, and forget those of the user's own, in which the server may have
// been started: both are out of reach.
func (s *session) privateTerminals(env []string, set map[string]string) []string {
	set["TMUX_TMPDIR"], set["SCREENDIR"], set["XDG_RUNTIME_DIR"] = s.tmp, s.tmp, s.tmp
	return environ.Drop(env, []string{"TMUX", "TMUX_PANE", "STY"})
}

// javaTemp has Java put temporary files in tmp: it knows /tmp only. What the host's
// variable says comes last, and wins.
func javaTemp(env []string, tmp string) []string {
	const name = "JDK_JAVA_OPTIONS"
	has, _ := environ.Get(env, name)
	return environ.Merge(env, map[string]string{name: strings.TrimSpace(`"-Djava.io.tmpdir=` + tmp + `" ` + has)})
}

// close removes the directories.
func (s *session) close(guard *tree.Watchdog) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir == nil {
		return
	}
	s.retire(0)
	for _, cage := range append(s.retired, s.cage) {
		if cage != nil {
			_ = cage.Close()
		}
	}
	s.removeDir(guard)
}

// removeDir removes the private directory, if there is one.
func (s *session) removeDir(guard *tree.Watchdog) {
	if s.dir == nil {
		return
	}
	s.dir.Remove()
	guard.DirEnds(s.dir.Path)
	s.dir = nil
}

// lay lays down what a command shall read first.
func (s *session) lay(c *Commands, u *Startup) (dir string, err error) {
	s.mu.Lock()
	at := s.dir
	s.mu.Unlock()
	return at.Lay(u.all(c.confinement.policy(), func(name, value string) bool { return environ.Withheld(name, value, c.cfg.PassEnv) }))
}

// unlay takes it away again.
func (s *session) unlay(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir != nil {
		s.dir.Unlay(dir)
	}
}
