package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// openLog opens the file of --log-file to append to, and makes it where there is none.
// Where it lies below one of the directories that commands can write, a link that they
// left there leads nowhere outside of it, and a named pipe is no log.
func openLog(path string, writable []string) (*os.File, error) {
	const flag = os.O_CREATE | os.O_APPEND | os.O_WRONLY | syscall.O_NONBLOCK // a pipe that nobody reads is not waited for
	const perm = fs.FileMode(0o600)
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	spelled := []string{path}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		spelled = append(spelled, filepath.Join(dir, filepath.Base(path)))
	}
	for _, dir := range writable {
		if rel := below(dir, spelled); rel != "" {
			return openLogIn(dir, rel, flag, perm)
		}
	}
	return os.OpenFile(path, flag, perm)
}

// below is what leads from a directory to a file that has several spellings, "" where it
// lies elsewhere.
func below(dir string, spelled []string) string {
	dirs := []string{dir}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dirs = append(dirs, real)
	}
	for _, path := range spelled {
		for _, dir := range dirs {
			if rel, err := filepath.Rel(dir, path); err == nil && rel != "." && filepath.IsLocal(rel) {
				return rel
			}
		}
	}
	return ""
}

// openLogIn opens a log that no link may lead out of the directory.
func openLogIn(dir, rel string, flag int, perm fs.FileMode) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, err := root.OpenFile(rel, flag, perm)
	if err != nil {
		return nil, fmt.Errorf("%w: commands can write there; name a file outside of the workspace and of what --allow-write permits", err)
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is not a file", filepath.Join(dir, rel)), err, file.Close())
	}
	return file, nil
}

// commandsWrite are the directories that commands can write, as they are named.
func (o *options) commandsWrite() []string {
	workspace := o.cfg.Workspace
	if workspace == "" {
		workspace = "."
	}
	if abs, err := filepath.Abs(workspace); err == nil {
		workspace = abs
	}
	return append([]string{workspace}, o.cfg.AllowWrite...)
}
