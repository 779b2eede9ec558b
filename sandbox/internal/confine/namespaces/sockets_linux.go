//go:build amd64 || arm64

package namespaces

import (
	"errors"
	"fmt"
	"io/fs"
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
// resolved, and tells whether some answer elsewhere: the kernel's list has a socket as it
// was bound, which may be relative to some directory, or not be its name any more.
func boundSockets() (paths []string, elsewhere bool) {
	table, err := os.ReadFile("/proc/net/unix")
	known := map[string]bool{} // the path of one that answers
	for line := range strings.Lines(string(table)) {
		f := strings.Fields(line) // Num RefCount Protocol Flags Type St Inode Path
		if len(f) < 8 || f[0] == "Num" || strings.HasPrefix(f[7], "@") {
			continue
		}
		answers := f[4] == datagrams || f[5] != connected
		at := strings.Index(line, " /")
		if at < 0 {
			elsewhere = elsewhere || answers
			continue
		}
		path := strings.TrimSuffix(line[at+1:], "\n")
		if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
			path = filepath.Join(dir, filepath.Base(path))
			paths = append(paths, path)
		}
		if answers {
			elsewhere = elsewhere || known[path] || gone(path)
			known[path] = true
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths), elsewhere || err != nil
}

// What the kernel's list says of a socket. One that is connected, and has no need of that
// for what it is sent, was accepted by another one, or bound by who connected.
const datagrams, connected = "0002", "03"

// gone reports whether there is no socket of this name, or nothing at all.
func gone(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&os.ModeSocket == 0 || errors.Is(err, fs.ErrNotExist)
}

// SocketsBelow lists the Unix sockets in directories, but not those that are named
// themselves.
func SocketsBelow(dirs []string) []string {
	bound, _ := boundSockets()
	return slices.DeleteFunc(bound, func(path string) bool {
		return slices.Contains(dirs, path) || !policy.Below(path, dirs) || !isSocket(path)
	})
}

// lookForSockets finds the sockets that may have to be covered, while the namespaces are
// made.
func lookForSockets(p policy.Policy) <-chan [][]byte {
	found := make(chan [][]byte, 1)
	bound, elsewhere := boundSockets()
	var walk socketWalk
	for _, place := range p.Places { // opened now: they are the caller's
		// Among what the user has installed, nobody listens but whom the kernel's list tells of.
		known := ofSystem(place.Reason) || policy.Installed(place.Reason) && !elsewhere
		if !place.Write && !place.Covered && !known && !policy.Below(place.Real, []string{"/dev", "/sys"}) {
			walk.begin(place)
		}
	}
	written := p.Written()
	go func() {
		defer walk.end()
		var paths [][]byte // not every path is text
		for _, path := range append(bound, walk.sockets(written)...) {
			paths = append(paths, []byte(path))
		}
		found <- paths
	}()
	return found
}

// maxSocketWalk bounds how many entries of readable places are looked at for sockets.
const maxSocketWalk = 4000

// A socketWalk finds sockets in places where the kernel's list does not tell of all: those
// of other networks are not in it.
type socketWalk struct {
	roots []*os.File
	level []socketDir
	seen  int
	found []string
}

// A socketDir is a directory to look into.
type socketDir struct {
	root *os.File
	name string // below it
	path string // on the machine
}

// begin adds a place.
func (w *socketWalk) begin(place policy.Place) {
	fd, err := unix.Openat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", place.Fd.Number()), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	root := os.NewFile(uintptr(fd), place.Real)
	w.roots = append(w.roots, root)
	if info, err := root.Stat(); err == nil && info.Mode()&os.ModeSocket != 0 {
		w.found = append(w.found, place.Real)
		return
	}
	w.level = append(w.level, socketDir{root, ".", place.Real})
}

func (w *socketWalk) end() { closeFiles(w.roots...) }

// sockets lists those that are not below what commands write, nearest first.
func (w *socketWalk) sockets(written []string) []string {
	for len(w.level) > 0 && w.seen < maxSocketWalk {
		level := w.level
		w.level = nil
		for _, dir := range level {
			if !slices.Contains(written, dir.path) {
				w.look(dir)
			}
		}
	}
	return w.found
}

// look adds what a directory holds.
func (w *socketWalk) look(dir socketDir) {
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(int(dir.root.Fd()), dir.name, &how)
	if err != nil {
		return
	}
	open := os.NewFile(uintptr(fd), dir.path)
	defer open.Close()
	entries, _ := open.ReadDir(maxSocketWalk - w.seen)
	for _, entry := range entries {
		w.seen++
		path := filepath.Join(dir.path, entry.Name())
		switch {
		case entry.IsDir():
			w.level = append(w.level, socketDir{dir.root, filepath.Join(dir.name, entry.Name()), path})
		case entry.Type()&os.ModeSocket != 0:
			w.found = append(w.found, path)
		}
	}
}

// ofSystem reports whether places can be read because the system needs them.
func ofSystem(reason string) bool {
	return slices.ContainsFunc(append([]policy.Group{policy.Etc, policy.Users}, policy.System...), func(g policy.Group) bool { return g.Reason == reason })
}

// coverSockets covers the sockets at the paths, as far as they can be seen and
// not written: the whole directory where it holds nothing else.
func (v view) coverSockets(sockets func() ([][]byte, error)) error {
	paths, err := sockets()
	if err != nil {
		return fmt.Errorf("the sockets to cover: %w", err)
	}
	for _, dir := range daemonDirs {
		if err := v.coverDir(dir); err != nil {
			return err
		}
	}
	for _, name := range paths {
		path := string(name)
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
