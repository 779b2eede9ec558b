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
	at       int // descriptor of where it is
	isDir    bool
	hops     int
}

// walk opens a path. The caller closes the place's descriptor. What was met on
// the way is told also when it fails.
func walk(path string, barriers []FileID) (Place, error) {
	w := walker{barriers: barriers, at: -1, place: Place{Path: path, Links: map[string]string{}}}
	err := w.restart()
	for rest := strings.Split(path, "/"); err == nil && len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		var link string
		if link, err = w.step(name); link != "" {
			rest = append(strings.Split(link, "/"), rest...)
		}
	}
	if err != nil {
		if w.at >= 0 {
			unix.Close(w.at)
		}
		return w.place, err
	}
	w.place.Fd = &descriptor{os.NewFile(uintptr(w.at), w.place.Real)}
	return w.place, nil
}

// restart goes to the root.
func (w *walker) restart() error {
	w.place.Real = "/"
	fd, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return w.enter(fd)
}

// enter makes fd the place where it is.
func (w *walker) enter(fd int) error {
	if w.at >= 0 {
		unix.Close(w.at)
	}
	w.at = fd
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	w.isDir = st.Mode&unix.S_IFMT == unix.S_IFDIR
	w.place.ID = IdOf(&st)
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
	fd, err := unix.Openat(w.at, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	if link, err = readlink(fd); err != nil {
		w.place.Real = next
		return "", w.enter(fd)
	}
	unix.Close(fd)
	if w.hops++; w.hops > MaxHops {
		return "", unix.ELOOP
	}
	w.place.Links[next] = link
	if filepath.IsAbs(link) {
		err = w.restart()
	}
	return link, err
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
