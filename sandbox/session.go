package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
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
}

func tmpOf(dir string) string  { return filepath.Join(dir, "tmp") }
func homeOf(dir string) string { return filepath.Join(dir, "home") }

// open makes the directories, also again when a command removed them.
func (s *session) open(c *Commands) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir == "" {
		dir, err := os.MkdirTemp("", "perstack-base-")
		if err != nil {
			return err
		}
		s.dir, s.tmp = dir, tmpOf(dir)
		s.env = s.private(c.env, c.cfg.PrivateHome)
		c.guard.dirBegins(dir)
	}
	if _, err := os.Lstat(s.tmp); err == nil {
		return nil
	}
	if err := os.MkdirAll(s.tmp, 0o700); err != nil {
		return err
	}
	return os.MkdirAll(homeOf(s.dir), 0o700)
}

// mark is the TMPDIR by which processes of the session are known, empty before the first command.
func (s *session) mark() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tmp
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
	removeTree(s.dir)
	guard.dirEnds(s.dir)
	s.dir = ""
}

// removeTree removes dir also when directories in it are not writable, as
// those of a Go module cache are.
func removeTree(dir string) {
	if !strings.HasPrefix(filepath.Base(dir), "perstack-base-") || os.RemoveAll(dir) == nil {
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
