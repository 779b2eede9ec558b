//go:build amd64 || arm64

package broker

import (
	"strings"

	"golang.org/x/sys/unix"
)

// mostLinks bounds the links of a path, as the kernel does.
const mostLinks = 40

// openStepwise opens a path as openat2 does with RESOLVE_NO_MAGICLINKS, and not even
// through the plain links of /proc. It is for where a filter around this server hides that
// call, as ours do: its arguments are out of a filter's sight.
func openStepwise(start int, path string, follow bool) (at int, err error) {
	if path == "" {
		return -1, unix.ENOENT
	}
	if at, err = openTop(start, path); err != nil {
		return -1, err
	}
	for links := 0; ; {
		if path = strings.TrimLeft(path, "/"); path == "" {
			return at, nil
		}
		name, rest, more := strings.Cut(path, "/")
		next, target, err := openStep(at, name, more, follow)
		switch {
		case err == nil && next >= 0:
			unix.Close(at)
			at, path = next, rest
			continue
		case err == nil:
			if links++; links > mostLinks {
				err = unix.ELOOP
				break
			}
			if path = target; more {
				path += "/" + rest
			}
			if !strings.HasPrefix(target, "/") {
				continue
			}
			unix.Close(at)
			if at, err = openTop(start, target); err != nil {
				return -1, err
			}
			continue
		}
		unix.Close(at)
		return -1, err
	}
}

// openTop opens where a path begins.
func openTop(start int, path string) (int, error) {
	top := "."
	if strings.HasPrefix(path, "/") {
		top = "/"
	}
	return unix.Openat(start, top, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// openStep opens one name in a directory, which must be a directory itself when there is
// more of the path. For a link that is to be followed it returns the target, and next is -1.
func openStep(at int, name string, more, follow bool) (next int, target string, err error) {
	if next, err = unix.Openat(at, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err != nil {
		return -1, "", err
	}
	var is unix.Stat_t
	err = unix.Fstat(next, &is)
	kind := is.Mode & unix.S_IFMT
	if err == nil && (kind == unix.S_IFDIR || kind != unix.S_IFLNK && !more || kind == unix.S_IFLNK && !more && !follow) {
		return next, "", nil
	}
	defer unix.Close(next)
	if err == nil && kind != unix.S_IFLNK {
		err = unix.ENOTDIR
	}
	if err != nil {
		return -1, "", err
	}
	target, err = readLink(next)
	return -1, target, err
}

// readLink reads an opened link that is not the kernel's own way to somewhere.
func readLink(fd int) (string, error) {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return "", err
	}
	if fs.Type == unix.PROC_SUPER_MAGIC {
		return "", unix.ELOOP
	}
	text := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", text)
	if err == nil && n == 0 {
		err = unix.ENOENT
	}
	return string(text[:max(n, 0)]), err
}
