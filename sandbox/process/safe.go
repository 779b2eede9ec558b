package process

import (
	"cmp"
	"path/filepath"

	"github.com/perstack-ai/perstack-base/sandbox/process/internal/environ"
)

// Safe reports whether no command can decide what an absolute path leads to. It
// is true of all of them where commands are not confined: what they can do they
// need nobody else for.
func (s *Shell) Safe(path string) bool {
	c := s.c.confinement
	return filepath.IsAbs(path) && (!c.confined() || c.policy().Safe(path))
}

// SafeProgram finds a program in path, a list as in PATH, past those that a
// command could have put there; "" when there is none.
func (s *Shell) SafeProgram(name, path string) string {
	for _, dir := range filepath.SplitList(cmp.Or(path, environ.DefaultPath)) {
		if file := filepath.Join(dir, name); s.Safe(file) && environ.Executable(file) == nil {
			return file
		}
	}
	return ""
}

// Unset is a script for bash and zsh that takes the variables away that commands
// do not get, because of their names or values. names are words of the shell that
// become all names, value is one that becomes the value of $perstack_n.
func (s *Shell) Unset(names, value string) string {
	return environ.Unset(s.c.cfg.PassEnv, names, value)
}
