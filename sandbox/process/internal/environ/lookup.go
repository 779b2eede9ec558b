package environ

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
)

// Why a name means no program.
var (
	// ErrNoProgram: there is none.
	ErrNoProgram = fault.New(fault.NotFound, "was not found")
	// ErrNotExecutable: it is a directory or may not be executed.
	ErrNotExecutable = fault.New(fault.Denied, "is not executable")
)

// DefaultPath is searched when the environment has no PATH at all, as execvp does.
const DefaultPath = "/usr/local/bin:/usr/bin:/bin"

// Lookup finds the program that name means for a process in dir. A name
// without a separator is searched in path, whose relative and empty entries
// count from dir.
func Lookup(name, dir, path string) (string, error) {
	if filepath.IsAbs(name) {
		return program(name)
	}
	if strings.ContainsRune(name, '/') || strings.ContainsRune(name, filepath.Separator) {
		return program(filepath.Join(dir, name))
	}
	found := ErrNoProgram
	for _, entry := range strings.Split(path, string(filepath.ListSeparator)) {
		if !filepath.IsAbs(entry) {
			entry = filepath.Join(dir, entry)
		}
		switch full, err := program(filepath.Join(entry, name)); {
		case err == nil:
			return full, nil
		case errors.Is(err, ErrNotExecutable) && Exists(full): // an entry that may not be searched holds nothing
			found = err
		}
	}
	return "", found
}

// program finds the file that a path of a program means.
func program(path string) (full string, err error) {
	for _, full = range candidates(path) {
		if err = Executable(full); !errors.Is(err, ErrNoProgram) {
			break
		}
	}
	return full, err
}

// Executable says why file cannot be started, or nil.
func Executable(file string) error {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return ErrNotExecutable
	case err != nil:
		return ErrNoProgram
	case info.IsDir() || !MayExecute(file):
		return ErrNotExecutable
	}
	return nil
}

// Exists reports whether there is something at a path that can be looked at.
func Exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// Get finds the last value of name in an environment list.
func Get(env []string, name string) (string, bool) {
	for i := len(env) - 1; i >= 0; i-- {
		if key, value, ok := strings.Cut(env[i], "="); ok && foldName(key) == foldName(name) {
			return value, true
		}
	}
	return "", false
}
