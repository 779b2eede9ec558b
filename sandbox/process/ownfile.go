package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// errOwnExposed: a file of the server's lies where commands could change it, or make
// its path lead elsewhere.
var errOwnExposed = errors.New("commands can write there, and it must be the server's alone: " +
	"name a file outside of the workspace and of what --allow-write permits")

// OpenOwn opens a file of the server's to append to, and makes it where there is none,
// for its owner alone. One that commands could write, or whose path they could lead
// elsewhere, is refused. It stays the file that it is, whatever becomes of its name.
func (c *Commands) OpenOwn(path string) (*os.File, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if err := c.ownPlace(path); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY|syscall.O_NONBLOCK, 0o600) // a named pipe that nobody reads is not waited for
	if err != nil {
		return nil, err
	}
	if err := c.ownPlace(path); err != nil { // a link of the user's that led to nothing
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// ownPlace refuses what commands have a say in: where the path lies as it is spelled,
// where it leads, and what is on the way.
func (c *Commands) ownPlace(path string) error {
	dir := filepath.Dir(path)
	realDir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	if c.exposed(path) || c.exposed(realDir) || !c.safe(dir) {
		return fmt.Errorf("%s: %w", path, errOwnExposed)
	}
	// No command has a say in what the directory has.
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && (c.exposed(real) || !c.safe(path)) {
		err = fmt.Errorf("%s: %w", path, errOwnExposed)
	}
	return err
}

// exposed reports whether a path lies where commands may write.
func (c *Commands) exposed(path string) bool {
	return slices.ContainsFunc(append([]string{c.cfg.Dir}, c.cfg.AllowWrite...), func(root string) bool {
		for _, root := range []string{root, realOr(root)} {
			if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
				return true
			}
		}
		return false
	})
}

func realOr(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// safe reports whether no command decides what a path leads to, as far as the kernel
// can keep them from that here.
func (c *Commands) safe(path string) bool {
	return c.confinement.foreseen() != nil || c.confinement.policy().Safe(path)
}
