package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// openLog opens the file of --log-file to append to, and makes it where there is none. It
// must not lie below one of the directories that commands can write, nor may its name lead
// through one: they could forge the log, or have it written to any file of the user's.
func openLog(path string, writable []string) (*os.File, error) {
	const flag = os.O_CREATE | os.O_APPEND | os.O_WRONLY | syscall.O_NONBLOCK // a pipe that nobody reads is not waited for
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := leadsAround(path, writable, errForged); err != nil {
		return nil, err
	}
	return os.OpenFile(path, flag, 0o600)
}

// errForged refuses a log that commands could write.
var errForged = errors.New("commands can write there, so they could forge it; name a file outside of the workspace and of what --allow-write permits")

// maxLogLinks is how many links in a name are followed.
const maxLogLinks = 40

// leadsAround follows a path, link by link, and fails, for the reason why, where it is below
// a directory that commands can write. What lies elsewhere they cannot change.
func leadsAround(path string, writable []string, why error) error {
	links := 0
	for rest, at := path, ""; ; {
		at = filepath.Join(at, rest)
		if isBelow(at, writable) {
			return fmt.Errorf("%s: %w", path, why)
		}
		link, to, after := firstLink(at)
		if link == "" {
			return nil
		}
		if links++; links > maxLogLinks {
			return fmt.Errorf("%s: too many symbolic links", path)
		}
		if isBelow(link, writable) {
			return fmt.Errorf("%s: %w", path, why)
		}
		if at = to; !filepath.IsAbs(to) {
			at = filepath.Join(filepath.Dir(link), to)
		}
		rest = after
	}
}

// firstLink finds the first link in a path, where it leads, and what of the path comes after
// it; "" where there is none.
func firstLink(path string) (link, to, after string) {
	volume := filepath.VolumeName(path)
	for i := len(volume) + 1; i <= len(path); i++ {
		if i < len(path) && path[i] != filepath.Separator {
			continue
		}
		info, err := os.Lstat(path[:i])
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		if to, err = os.Readlink(path[:i]); err == nil {
			return path[:i], to, strings.TrimPrefix(path[i:], string(filepath.Separator))
		}
	}
	return "", "", ""
}

// isBelow reports whether a path is one of the directories or lies below it, by either
// spelling of that.
func isBelow(path string, dirs []string) bool {
	for _, dir := range dirs {
		spelled := []string{dir}
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			spelled = append(spelled, real)
		}
		for _, dir := range spelled {
			if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
				return true
			}
		}
	}
	return false
}

// commandsWrite are the directories that commands can write, as they are named.
func (o *options) commandsWrite() []string {
	dirs := append([]string{o.cfg.Workspace}, o.cfg.AllowWrite...)
	for i, dir := range dirs {
		if abs, err := filepath.Abs(dir); err == nil { // of "", the directory that we are in
			dirs[i] = abs
		}
	}
	return dirs
}
