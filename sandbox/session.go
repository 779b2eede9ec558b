package sandbox

import (
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
)

// A session is the private directory of one Shell, and the cage of its commands.
// Both are made at the first command.
type session struct {
	mu  sync.Mutex
	dir *sessionDir
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
	if s.wider[key] == nil {
		cage, err := c.confinement.cage(cageFor{s.dir, read, write})
		if err != nil {
			return nil, err
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
	if s.dir != nil && s.dir.whole() {
		if s.cage != nil || !c.confinement.confined() {
			return nil // where making the cage failed, it is tried again: nothing runs without
		}
		return s.confine(c)
	}
	if s.dir == nil || s.dir.fill() != nil {
		dir, err := c.confinement.newSessionDir()
		if err != nil {
			return err
		}
		s.removeDir(c.guard)
		s.dir, s.tmp = dir, dir.tmp()
		s.env = s.private(c.env(), c.confinement.confined())
		if c.confinement.confined() {
			s.env = addMissing(s.env, []string{"APT_CONFIG=" + filepath.Join(dir.path, aptConf)})
			if home, _ := getenv(c.cfg.Env, "HOME"); hasCargoConfig(home) {
				dir.layCargo(c.confinement.policy(), home, c.cfg.Network)
			}
		}
		c.guard.dirBegins(dir.path)
	}
	return s.confine(c)
}

// confine makes the session's cage. A directory that was made again is another
// one to the kernel, so its cage is made again too.
func (s *session) confine(c *Commands) (err error) {
	if !c.confinement.confined() {
		return nil
	}
	if s.cage != nil {
		s.retired = append(s.retired, s.cage)
	}
	s.retire(0)
	s.cage, err = c.confinement.cage(cageFor{session: s.dir})
	return err
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
		set["HOME"] = s.dir.home()
	}
	return mergeEnv(env, set)
}

// close removes the directories.
func (s *session) close(guard *watchdog) {
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
func (s *session) removeDir(guard *watchdog) {
	if s.dir == nil {
		return
	}
	s.dir.remove()
	guard.dirEnds(s.dir.path)
	s.dir = nil
}

// lay lays down what a command shall read first.
func (s *session) lay(c *Commands, u *Startup) (dir string, err error) {
	s.mu.Lock()
	at := s.dir
	s.mu.Unlock()
	return at.lay(u, c.confinement.policy(), func(name, value string) bool { return withheld(name, value, c.cfg.PassEnv) })
}

// unlay takes it away again.
func (s *session) unlay(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir != nil {
		s.dir.unlay(dir)
	}
}
