package policy

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A fileID is what the kernel knows an object by, as long as somebody has it open.
type FileID struct{ Dev, Ino uint64 }

// A descriptor holds an object, whatever happens to its names: O_PATH.
type descriptor struct{ file *os.File }

func (d *descriptor) Number() int { return int(d.file.Fd()) }

// path names the object wherever it was moved.
func (d *descriptor) path() string { return "/proc/self/fd/" + strconv.Itoa(d.Number()) }

func (d *descriptor) close() {
	if d != nil {
		d.file.Close()
	}
}

// errWritable: a path leads through a place that commands can write, so they
// decide where it leads.
var errWritable = errors.New("lies in a directory that commands can write: no link out of it counts")

// A walker opens paths one component at a time, following links, and goes
// nowhere through one of the barriers.
type walker struct {
	barriers []FileID
	place    Place
	met      *met // nil: it opens all anew
	at       int  // descriptor of where it is
	dir      *dir // what is met holds that; nil where the walker does, or nothing is open
	isDir    bool
	hops     int
}

// walk opens a path. The caller closes the place's descriptor. What was met on
// the way is told also when it fails; what walks before have met is not opened again.
func walk(path string, barriers []FileID, before *met) (Place, error) {
	w := walker{barriers: barriers, at: -1, met: before, place: Place{Path: path}}
	err := w.restart()
	for rest := strings.Split(path, "/"); err == nil && len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		var link string
		if link, err = w.step(name); link != "" {
			rest = append(strings.Split(link, "/"), rest...)
		}
	}
	if err == nil && w.dir != nil {
		w.at, err = unix.FcntlInt(uintptr(w.dir.fd), unix.F_DUPFD_CLOEXEC, 0)
		w.dir = nil
	}
	if err != nil {
		w.leave()
		return w.place, err
	}
	w.place.Fd = &descriptor{os.NewFile(uintptr(w.at), w.place.Real)}
	return w.place, nil
}

// restart goes to the root.
func (w *walker) restart() error {
	w.place.Real = "/"
	if root := w.met.top(); root != nil {
		return w.visit(root)
	}
	fd, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	return w.enter(fd, &st, unix.Fstat(fd, &st), "")
}

// leave closes where it is.
func (w *walker) leave() {
	if w.at >= 0 && w.dir == nil {
		unix.Close(w.at)
	}
	w.at, w.dir = -1, nil
}

// enter makes fd, of this name where it is, the place where it is.
func (w *walker) enter(fd int, st *unix.Stat_t, err error, name string) error {
	above := w.dir
	w.leave()
	w.at = fd
	if err != nil {
		return err
	}
	w.isDir = st.Mode&unix.S_IFMT == unix.S_IFDIR
	w.place.ID = IdOf(st)
	switch {
	case name == ".." && above != nil && above.above != nil && above.above.id == w.place.ID:
		unix.Close(fd)
		return w.visit(above.above)
	case w.isDir && name != "..":
		w.dir = w.met.keep(above, name, fd, w.place.ID)
	}
	return w.judge()
}

// visit makes a directory that was met before the place where it is.
func (w *walker) visit(d *dir) error {
	w.leave()
	w.at, w.dir, w.isDir, w.place.ID = d.fd, d, true, d.id
	return w.judge()
}

// judge refuses to be where commands can write.
func (w *walker) judge() error {
	if slices.Contains(w.barriers, w.place.ID) {
		return errWritable
	}
	return nil
}

// IdOf is what a file is known by, whatever its names.
func IdOf(st *unix.Stat_t) FileID { return FileID{uint64(st.Dev), st.Ino} }

// step goes to a name in the directory where it is, or returns the target of
// the link that bears it.
func (w *walker) step(name string) (link string, err error) {
	if name == "" || name == "." {
		return "", nil
	}
	if !w.isDir {
		return "", unix.ENOTDIR
	}
	next := filepath.Join(w.place.Real, name)
	if name != ".." && w.place.Real == "/proc" {
		return "", unix.ENOENT // what lies there is another for everyone who looks
	}
	if w.dir != nil && w.dir.below[name] != nil {
		w.place.Real = next
		return "", w.visit(w.dir.below[name])
	}
	fd, err := unix.Openat(w.at, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFLNK {
		w.place.Real = next
		return "", w.enter(fd, &st, err, name)
	}
	link, err = readlink(fd)
	unix.Close(fd)
	if err != nil {
		return "", err
	}
	return link, w.follow(next, link)
}

// follow notes a link, and goes to the root where it leads there.
func (w *walker) follow(at, link string) error {
	if w.hops++; w.hops > MaxHops {
		return unix.ELOOP
	}
	if w.place.Links == nil {
		w.place.Links = map[string]string{}
	}
	w.place.Links[at] = link
	if filepath.IsAbs(link) {
		return w.restart()
	}
	return nil
}

// readlink reads an open link; what is none is an error.
func readlink(fd int) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}
