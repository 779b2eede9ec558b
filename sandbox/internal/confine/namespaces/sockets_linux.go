//go:build amd64 || arm64

package namespaces

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"golang.org/x/sys/unix"
)

// A mount that is read only does not keep anybody from connecting to a socket in
// it. What the machine's programs listen on below a place that commands can only
// read is therefore covered.

// daemonDirs hold sockets whenever their daemon runs, also if it starts later.
var daemonDirs = []string{"/nix/var/nix/daemon-socket"}

// boundSockets lists the paths of the Unix sockets of the machine's network, links
// resolved.
func boundSockets() (paths []string) {
	table, _ := os.ReadFile("/proc/net/unix")
	for line := range strings.Lines(string(table)) {
		// Num RefCount Protocol Flags Type St Inode Path
		if at := strings.Index(line, " /"); at >= 0 {
			path := strings.TrimSuffix(line[at+1:], "\n")
			if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
				paths = append(paths, filepath.Join(dir, filepath.Base(path)))
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// SocketsBelow lists the Unix sockets in directories, but not those that are named
// themselves.
func SocketsBelow(dirs []string) []string {
	return slices.DeleteFunc(boundSockets(), func(path string) bool {
		return slices.Contains(dirs, path) || !policy.Below(path, dirs) || !isSocket(path)
	})
}

// maxSocketWalk bounds how many entries of readable places are looked at for sockets.
const maxSocketWalk = 4000

// sockets lists those found in places that are not the system's, which can only be
// read: the machine's list names a socket as it was bound, which may be relative to
// some directory, or not be its name any more.
func (v view) sockets(p policy.Policy) (found []string) {
	level, seen := []string{}, 0
	for _, place := range p.Places {
		if !place.Write && !place.Covered && !ofSystem(place.Reason) {
			level = append(level, place.Real)
		}
	}
	for len(level) > 0 {
		var deeper []string
		for _, dir := range level {
			if v.grants[dir].write || policy.Below(dir, []string{oldRoot, "/dev", "/sys"}) {
				continue
			}
			if isSocket(dir) {
				found = append(found, dir)
			}
			entries, _ := os.ReadDir(dir)
			for _, entry := range entries {
				if seen++; seen > maxSocketWalk {
					return found
				}
				if path := filepath.Join(dir, entry.Name()); entry.IsDir() || entry.Type()&os.ModeSocket != 0 {
					deeper = append(deeper, path)
				}
			}
		}
		level = deeper
	}
	return found
}

// ofSystem reports whether places can be read because the system needs them.
func ofSystem(reason string) bool {
	return slices.ContainsFunc(append([]policy.Group{policy.Etc, policy.Users}, policy.System...), func(g policy.Group) bool { return g.Reason == reason })
}

// coverSockets covers the sockets at the paths, as far as they can be seen and
// not written: the whole directory where it holds nothing else.
func (v view) coverSockets(paths []string) error {
	for _, dir := range daemonDirs {
		if err := v.coverDir(dir); err != nil {
			return err
		}
	}
	for _, path := range paths {
		if write, granted := v.above(path); write || !granted || !isSocket(path) {
			continue
		}
		dir := filepath.Dir(path)
		if _, itself := v.grants[dir]; !itself && holdsSocketsOnly(dir) {
			if err := v.coverDir(dir); err != nil {
				return err
			}
			continue
		}
		if err := unix.Mount(oldRoot+"/dev/null", path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("covering the socket %s: %w", path, err)
		}
	}
	return nil
}

// coverDir makes a directory empty that can be seen.
func (v view) coverDir(dir string) error {
	write, granted := v.above(dir)
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() || write || !granted {
		return nil
	}
	if err := unix.Mount("empty", dir, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("covering the sockets in %s: %w", dir, err)
	}
	return nil
}

func isSocket(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&os.ModeSocket != 0
}

func holdsSocketsOnly(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Type()&os.ModeSocket == 0 })
}
