package sandbox

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// A session is the private directory of one Shell: TMPDIR, and HOME where that
// is private. It is made at the first command.
type session struct {
	mu  sync.Mutex
	dir string
	tmp string
	env []string // the host's, with the private directories

	cage    *cage            // nil: commands are not confined
	wider   map[string]*cage // for commands with rights of their own, by those rights
	retired []*cage          // of directories that a command removed; commands may still run in them
}

// A PrivateDirError: commands cannot run, for there is no place for their
// temporary files.
type PrivateDirError struct {
	Dir string // where it was tried
	Err error  // the system's
}

func (e *PrivateDirError) Error() string {
	return "commands need a directory for temporary files, and none can be made in " + e.Dir + ": " + reason(e.Err).Error()
}

func (e *PrivateDirError) Unwrap() error { return e.Err }

// Hint says what gives them one.
func (e *PrivateDirError) Hint() string {
	return "Start the server with TMPDIR naming a directory that it may write; in a container give it one with --tmpfs /tmp."
}

// newPrivateDir makes the directory of a session.
func newPrivateDir() (string, error) {
	dir, err := os.MkdirTemp("", privatePrefix)
	if err != nil {
		return "", &PrivateDirError{Dir: os.TempDir(), Err: err}
	}
	return dir, nil
}

// privatePrefix begins the name of every private directory.
const privatePrefix = "perstack-base-"

func tmpOf(dir string) string  { return filepath.Join(dir, "tmp") }
func homeOf(dir string) string { return filepath.Join(dir, "home") }

// open makes the directories, also again when a command removed them, and
// returns the cage for the next command, nil where commands are not confined.
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
		cage, err := c.confinement.wider(read, write, s.dir)
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
	if s.dir == "" {
		dir, err := newPrivateDir()
		if err != nil {
			return err
		}
		s.dir, s.tmp = dir, tmpOf(dir)
		s.env = s.private(c.env(), c.confinement.confined())
		c.guard.dirBegins(dir)
	}
	_, err := os.Lstat(s.tmp)
	if err == nil && (s.cage != nil || !c.confinement.confined()) {
		return nil // where making the cage failed, it is tried again: nothing runs without
	}
	if err := os.MkdirAll(s.tmp, 0o700); err != nil {
		return err
	}
	if err := os.MkdirAll(homeOf(s.dir), 0o700); err != nil {
		return err
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
	s.cage, err = c.confinement.cage(s.dir)
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
		set["HOME"] = homeOf(s.dir)
	}
	return mergeEnv(env, set)
}

// close removes the directories.
func (s *session) close(guard *watchdog) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir == "" {
		return
	}
	s.retire(0)
	for _, cage := range append(s.retired, s.cage) {
		if cage != nil {
			_ = cage.Close()
		}
	}
	removeTree(s.dir)
	guard.dirEnds(s.dir)
	s.dir = ""
}

// removeTree removes dir also when directories in it are not writable, as
// those of a Go module cache are.
func removeTree(dir string) {
	if !strings.HasPrefix(filepath.Base(dir), privatePrefix) || os.RemoveAll(dir) == nil {
		return
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return
	}
	defer root.Close()
	_ = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = root.Chmod(path, 0o700)
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}
