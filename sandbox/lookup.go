package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// defaultPath is searched when the environment has no PATH at all, as execvp does.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// lookup finds the program that name means for a process in dir. A name
// without a separator is searched in path, whose relative and empty entries
// count from dir.
func lookup(name, dir, path string) (string, error) {
	if filepath.IsAbs(name) {
		return name, executable(name)
	}
	if strings.ContainsRune(name, '/') || strings.ContainsRune(name, filepath.Separator) {
		full := filepath.Join(dir, name)
		return full, executable(full)
	}
	found := ErrNoProgram
	for _, entry := range strings.Split(path, string(filepath.ListSeparator)) {
		if !filepath.IsAbs(entry) {
			entry = filepath.Join(dir, entry)
		}
		full := filepath.Join(entry, name)
		switch err := executable(full); {
		case err == nil:
			return full, nil
		case errors.Is(err, ErrNotExecutable) && exists(full): // an entry that may not be searched holds nothing
			found = err
		}
	}
	return "", found
}

// executable says why file cannot be started, or nil.
func executable(file string) error {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return ErrNotExecutable
	case err != nil:
		return ErrNoProgram
	case info.IsDir() || !mayExecute(file):
		return ErrNotExecutable
	}
	return nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// getenv finds the last value of name in an environment list.
func getenv(env []string, name string) (string, bool) {
	for i := len(env) - 1; i >= 0; i-- {
		if key, value, ok := strings.Cut(env[i], "="); ok && key == name {
			return value, true
		}
	}
	return "", false
}
