package sandbox

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Workdirs are the private trees that belong to one workspace and lie outside
// it: one Workdir for each session, and the Artifacts that outlive them. Nothing
// is made on the machine before the first is asked for.
type Workdirs struct {
	workspace string

	mu  sync.Mutex
	dir string // once it is made
}

// abandoned is how old a tree without an owner is when it is swept.
const abandoned = time.Hour

// NewWorkdirs returns the trees of a workspace, whose links are resolved.
func NewWorkdirs(workspace string) *Workdirs { return &Workdirs{workspace: workspace} }

// ErrNoWorkdir: neither the user's cache nor the system's temporary directory
// can hold a private tree outside the workspace.
var ErrNoWorkdir = errors.New("there is no place outside the workspace where a private directory can be made")

// open makes the directory of the workspace, in the user's cache or else below
// the system's temporary directory.
func (d *Workdirs) open() (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dir != "" {
		return d.dir, nil
	}
	why := ErrNoWorkdir
	for _, place := range d.places() {
		dir, err := d.private(place)
		if err == nil {
			d.dir = dir
			return dir, nil
		}
		why = fmt.Errorf("%w: %w", ErrNoWorkdir, reason(err))
	}
	return "", why
}

// places are where the directory of the workspace may be, the best first.
func (d *Workdirs) places() []string {
	sum := sha256.Sum256([]byte(d.workspace))
	name := filepath.Join("perstack-base", fmt.Sprintf("%x", sum[:8]))
	places := []string{filepath.Join(os.TempDir(), ownName(os.Getuid()), name)}
	if cache, err := os.UserCacheDir(); err == nil {
		places = append([]string{filepath.Join(cache, name)}, places...)
	}
	return places
}

// ownName is a user's directory in the system's temporary one. On Windows users
// have no number, and a temporary directory each.
func ownName(uid int) string {
	if uid < 0 {
		return "perstack-base-own"
	}
	return fmt.Sprintf("perstack-base-%d", uid)
}

// inside reports whether dir lies in the workspace, as text.
func (d *Workdirs) inside(dir string) bool {
	return strings.HasPrefix(withSeparator(filepath.Clean(dir)), withSeparator(d.workspace))
}

// private makes dir with nobody else's rights, and returns its real path. Nobody
// else may own it or the two above it, which are ours as well.
func (d *Workdirs) private(dir string) (string, error) {
	if d.inside(dir) {
		return "", ErrNoWorkdir
	}
	if err := os.MkdirAll(filepath.Join(dir, "run"), 0o700); err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	for _, own := range []string{real, filepath.Dir(real), filepath.Dir(filepath.Dir(real))} {
		if info, err := os.Lstat(own); err != nil || ownedByOther(info) {
			return "", ErrNoWorkdir
		}
	}
	if d.inside(real) {
		return "", ErrNoWorkdir
	}
	return real, os.Chmod(real, 0o700)
}

// New makes an empty tree for a session of that name and keeps it until Close.
func (d *Workdirs) New(name string) (*Workdir, error) {
	top, err := d.open()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(top, "run", name)
	lock, err := os.OpenFile(dir+lockSuffix, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err = os.Mkdir(dir, 0o700); err == nil && !lockFile(lock, true) {
		err = fs.ErrExist
	}
	if err != nil {
		lock.Close()
		return nil, err
	}
	files, err := Open(dir, Limits{})
	if err != nil {
		lock.Close()
		return nil, err
	}
	return &Workdir{FS: files, lock: lock}, nil
}

const lockSuffix = ".lock"

// Sweep removes the trees of servers that died, after an hour. It makes nothing.
func (d *Workdirs) Sweep() {
	for _, top := range d.places() {
		entries, _ := os.ReadDir(filepath.Join(top, "run"))
		for _, e := range entries {
			name, isLock := strings.CutSuffix(e.Name(), lockSuffix)
			if info, err := e.Info(); isLock && err == nil && time.Since(info.ModTime()) > abandoned {
				sweep(filepath.Join(top, "run", name))
			}
		}
	}
}

func sweep(dir string) {
	lock, err := os.OpenFile(dir+lockSuffix, os.O_RDWR, 0)
	if err != nil {
		return
	}
	if !lockFile(lock, true) {
		lock.Close()
		return
	}
	removeWritable(dir)
	dropLock(lock)
}

// dropLock removes a lock file that is held, and lets go of it, in this order, so
// that nobody else can take it meanwhile. Windows removes no file that is open.
func dropLock(lock *os.File) {
	err := os.Remove(lock.Name())
	lock.Close()
	if err != nil {
		_ = os.Remove(lock.Name())
	}
}

// removeWritable removes a tree of ours, also below directories that a command
// made unwritable.
func removeWritable(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return
	}
	defer root.Close()
	makeWritable(root, ".")
	_ = os.RemoveAll(dir)
}

func makeWritable(root *os.Root, dir string) {
	_ = fs.WalkDir(root.FS(), dir, func(path string, e fs.DirEntry, _ error) error {
		if e != nil && e.IsDir() {
			_ = root.Chmod(path, 0o700)
		}
		return nil
	})
}
