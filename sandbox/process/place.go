package process

import (
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/environ"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/private"
)

// A PrivateDirError: commands cannot run, for there is no place for their
// temporary files.
type PrivateDirError struct {
	Dir string // where it was tried
	Err error  // the system's, or errExposed
}

func (e *PrivateDirError) Error() string {
	return "commands need a directory for temporary files, and none can be made in " + e.Dir + ": " + sandbox.Reason(e.Err).Error()
}

func (e *PrivateDirError) Unwrap() error { return e.Err }

// Hint says what gives them one.
func (e *PrivateDirError) Hint() string {
	if errors.Is(e.Err, errExposed) {
		return "Start the server with TMPDIR naming a directory outside the workspace and outside of every --allow-write."
	}
	return "Start the server with TMPDIR naming a directory that it may write; in a container give it one with --tmpfs /tmp."
}

// errExposed: a directory is no place for what the server relies on.
var errExposed = errors.New("commands can write there")

// newSessionDir makes the directory of a session, with all that it holds.
func (c *confinement) newSessionDir(confined bool) (*private.Dir, error) {
	place := c.privatePlace(confined)
	if place == "" {
		return nil, &PrivateDirError{Dir: os.TempDir(), Err: errExposed}
	}
	if confined {
		go c.cache() // which is waited for below
	}
	d, err := private.New(place)
	if err != nil {
		return nil, &PrivateDirError{Dir: place, Err: err}
	}
	if confined {
		if cache := c.cache(); cache != nil {
			d.Cache = cache.Dir()
		}
	}
	return d, nil
}

// A lodging is the private directory of a session, and the environment of commands that
// live there.
type lodging struct {
	dir *private.Dir
	env func() []string // waits until HOME is furnished
}

// furnishing furnishes the HOME of a session while its cage is made, which goes first where
// it was begun.
func (c *confinement) furnishing(dir *private.Dir, begun *confine.Begun) lodging {
	env := make(chan []string, 1)
	go func() {
		begun.Await()
		env <- c.furnish(dir)
	}()
	return lodging{dir, sync.OnceValue(func() []string { return <-env })}
}

// remove removes it.
func (l lodging) remove() {
	l.env()
	l.dir.Remove()
}

// privatePlace is the system's directory for temporary files, or another one
// where commands can write in that; "" when they can write everywhere.
func (c *confinement) privatePlace(confined bool) string {
	if in := c.cfg.inside; in != nil {
		return in.tree
	}
	if !confined || c.policy().Allows("/", true) {
		return os.TempDir()
	}
	places := []string{os.TempDir(), "/tmp", "/var/tmp"}
	if run := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(run) {
		places = append(places, run)
	}
	if cache, err := os.UserCacheDir(); err == nil {
		places = append(places, cache)
	}
	for i, place := range places {
		if abs, err := filepath.Abs(place); err == nil && c.policy().Safe(abs) {
			return place
		} else if i == 0 && !environ.Exists(place) {
			return place // making a directory in it tells what is wrong
		}
	}
	return ""
}
