package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"
)

// listenUnix binds a socket that only this user can reach. A stale one, which
// nobody answers on, is replaced; any other file is left alone. A missing directory
// is made, for this user alone. The socket is removed when the listener is closed.
// It is bound by its real name, by which it is judged whether commands can reach it.
func listenUnix(path string) (net.Listener, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the directory %s does not exist and cannot be made: %w; name a socket in a directory of your own", dir, err)
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	path = filepath.Join(dir, filepath.Base(path))
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode()&os.ModeSocket == 0:
		return nil, fmt.Errorf("%s exists and is not a socket", path)
	default:
		if conn, err := net.DialTimeout("unix", path, time.Second); err == nil {
			conn.Close()
			return nil, fmt.Errorf("another server answers on %s", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	return privately(func() (net.Listener, error) { return net.Listen("unix", path) })
}
