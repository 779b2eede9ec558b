package scratch

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

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/files"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"github.com/perstack-ai/perstack-base/sandbox/internal/disk"
)

// Workdirs are the private trees that belong to one workspace and lie outside
// it, where no command can write: one Workdir for each session, and the Artifacts
// that outlive them. Nothing is made on the machine before the first is asked for.
type Workdirs struct {
	writable []string // what commands can write, the workspace first
	Variant  string   // of the workspace: its commands run in containers of that image; "" for on this machine

	mu  sync.Mutex
	top *os.Root // once it is made
}

// abandoned is how old a tree without an owner is when it is swept.
const abandoned = time.Hour

// NewWorkdirs returns the trees of a workspace, whose links are resolved.
// Besides it, commands can write in the writable directories.
func NewWorkdirs(workspace string, writable ...string) *Workdirs {
	return &Workdirs{writable: append([]string{workspace}, writable...)}
}

// ErrNoWorkdir: neither the user's cache nor the system's temporary directory
// can hold a private tree outside what commands can write.
var ErrNoWorkdir = errors.New("there is no place outside the workspace, and outside of what commands may write, where a private directory can be made")

// open makes the directory of the workspace, in the user's cache or else below
// the system's temporary directory.
func (d *Workdirs) open() (*os.Root, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.top != nil {
		return d.top, nil
	}
	why := ErrNoWorkdir
	for _, place := range d.places() {
		top, err := d.private(place, true)
		if err == nil {
			d.top = top
			return top, nil
		}
		why = fmt.Errorf("%w: %w", ErrNoWorkdir, sandbox.Reason(err))
	}
	return nil, why
}

// A privatePlace is a directory of the system or the user, and the names of ours
// below it.
type privatePlace struct {
	base  string
	names []string
}

// places are where the directory of the workspace may be, the best first.
func (d *Workdirs) places() []privatePlace {
	name := d.writable[0]
	if d.Variant != "" {
		name += "\x00" + d.Variant // which is in no path
	}
	sum := sha256.Sum256([]byte(name))
	names := []string{"perstack-base", fmt.Sprintf("%x", sum[:8])}
	places := []privatePlace{{os.TempDir(), append([]string{ownName(os.Getuid())}, names...)}}
	if cache, err := os.UserCacheDir(); err == nil {
		places = append([]privatePlace{{cache, names}}, places...)
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

// exposed reports whether commands decide what is at a path.
func (d *Workdirs) exposed(path string) bool {
	for _, dir := range d.writable {
		if strings.HasPrefix(disk.WithSeparator(filepath.Clean(path)), disk.WithSeparator(dir)) {
			return true
		}
	}
	policy := policy.Policy{Write: d.writable}.Pin()
	defer policy.Close()
	return !policy.Safe(path)
}

// private opens the directory, and makes it if asked to. Each of its names is a
// directory of this user's and no link, whoever was there first.
func (d *Workdirs) private(place privatePlace, create bool) (*os.Root, error) {
	if create && !d.exposed(filepath.Dir(place.base)) {
		if err := os.MkdirAll(place.base, 0o700); err != nil {
			return nil, err
		}
	}
	if d.exposed(place.base) {
		return nil, ErrNoWorkdir
	}
	root, err := os.OpenRoot(place.base)
	if err != nil {
		return nil, err
	}
	for _, name := range place.names {
		below, err := ownDir(root, name, create)
		root.Close()
		if err != nil {
			return nil, err
		}
		root = below
	}
	if d.exposed(root.Name()) {
		root.Close()
		return nil, ErrNoWorkdir
	}
	if create {
		if err := errors.Join(root.Chmod(".", 0o700), ignoring(fs.ErrExist, root.Mkdir("run", 0o700))); err != nil {
			root.Close()
			return nil, err
		}
	}
	return root, nil
}

// ownDir opens a directory of this user's in another one.
func ownDir(in *os.Root, name string, create bool) (*os.Root, error) {
	if create {
		if err := in.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	info, err := in.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() || !disk.OwnedByUs(info) {
		return nil, ErrNoWorkdir
	}
	root, err := in.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if opened, err := root.Stat("."); err != nil || !os.SameFile(info, opened) {
		root.Close()
		return nil, ErrNoWorkdir
	}
	return root, nil
}

// ignoring is err, or nil for one that is expected.
func ignoring(expected, err error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

// New makes an empty tree for a session of that name and keeps it until Close.
func (d *Workdirs) New(name string) (*Workdir, error) {
	top, err := d.open()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join("run", name)
	lock, err := top.OpenFile(dir+lockSuffix, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err = top.Mkdir(dir, 0o700); err == nil && !disk.LockFile(lock, true) {
		err = fs.ErrExist
	}
	if err != nil {
		lock.Close()
		return nil, err
	}
	files, err := files.Open(filepath.Join(top.Name(), dir), sandbox.Limits{})
	if err != nil {
		lock.Close()
		return nil, err
	}
	return &Workdir{FS: files, lock: lock, top: top, name: dir}, nil
}

const lockSuffix = ".lock"

// Sweep removes the trees of servers that died, after an hour. It makes nothing.
func (d *Workdirs) Sweep() {
	for _, place := range d.places() {
		if top, err := d.private(place, false); err == nil {
			sweep(top)
			top.Close()
		}
	}
}

func sweep(top *os.Root) {
	entries, _ := fs.ReadDir(top.FS(), "run")
	for _, e := range entries {
		name, isLock := strings.CutSuffix(e.Name(), lockSuffix)
		if info, err := e.Info(); isLock && err == nil && time.Since(info.ModTime()) > abandoned {
			sweepOne(top, filepath.Join("run", name))
		}
	}
}

func sweepOne(top *os.Root, dir string) {
	lock, err := top.OpenFile(dir+lockSuffix, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer lock.Close()
	if disk.LockFile(lock, true) {
		_ = disk.RemoveAll(top, dir)
		_ = disk.RemoveOpen(top, dir+lockSuffix, lock)
	}
}

func makeWritable(root *os.Root, dir string) {
	_ = fs.WalkDir(root.FS(), dir, func(path string, e fs.DirEntry, _ error) error {
		if tooDeep(path) {
			return fs.SkipDir
		}
		if e != nil && e.IsDir() {
			_ = root.Chmod(path, 0o700)
		}
		return nil
	})
}
