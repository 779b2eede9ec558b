package disk

import (
	"errors"
	"github.com/perstack-ai/perstack-base/sandbox"
	"io"
	"io/fs"
	"math/bits"
	"math/rand/v2"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// A temp is a file beside a target under a name of ours, open and locked. The
// lock ends with the process, however that dies: whoever later meets the name
// unlocked knows that nobody needs it any more and removes it.
type Temp struct {
	dir  *os.Root
	Name string
	File *os.File // nil for a second name of a file that we cannot open
	data []byte   // its content, should the target be a mount point
	slot int
	Gone bool // renamed into place, or removed
}

const (
	TempPrefix = ".perstack-base-"
	TempSuffix = ".tmp"
	tempTries  = 8
)

// isTemp recognises the names of temporary files.
func IsTemp(name string) bool {
	return strings.HasPrefix(name, TempPrefix) && strings.HasSuffix(name, TempSuffix)
}

// slots are the numbers in the names of temps. The smallest free one is taken,
// so that a writer meets what a killed one left in the same directory without
// listing it.
var slots struct {
	sync.Mutex
	busy []uint64
}

func takeSlot() int {
	slots.Lock()
	defer slots.Unlock()
	for i, word := range slots.busy {
		if free := bits.TrailingZeros64(^word); free < 64 {
			slots.busy[i] |= 1 << free
			return i*64 + free
		}
	}
	slots.busy = append(slots.busy, 1)
	return len(slots.busy)*64 - 64
}

func freeSlot(n int) {
	slots.Lock()
	defer slots.Unlock()
	slots.busy[n/64] &^= 1 << (n % 64)
}

// newTemp makes a temp in dir by calling create with names until one is free.
// create must fail with fs.ErrExist for a name that is taken.
func NewTemp(dir *os.Root, create func(name string) (*os.File, error)) (*Temp, error) {
	t := &Temp{dir: dir, slot: takeSlot()}
	t.Name = TempPrefix + strconv.Itoa(t.slot) + TempSuffix
	for range tempTries {
		file, err := create(t.Name)
		if err == nil && t.claim(file) {
			return t, nil
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			freeSlot(t.slot)
			return nil, err
		}
		if !removeStale(dir, t.Name) {
			t.Name = TempPrefix + strconv.FormatUint(rand.Uint64(), 36) + TempSuffix
		}
	}
	freeSlot(t.slot)
	return nil, fs.ErrExist
}

// claim locks the new file. It fails if another process took it for stale in
// the moment between creation and lock.
func (t *Temp) claim(file *os.File) bool {
	if file == nil {
		return true
	}
	locked := LockFile(file, false)
	if locked && sameEntry(t.dir, t.Name, file) {
		t.File = file
		return true
	}
	file.Close()
	return false
}

// removeStale removes a temp whose owner is dead; false if it lives, or is not
// a file of ours.
func removeStale(dir *os.Root, name string) bool {
	info, err := dir.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return errors.Is(err, fs.ErrNotExist)
	}
	file, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer file.Close()
	return LockFile(file, true) && sameEntry(dir, name, file) && RemoveOpen(dir, name, file) == nil
}

// sameEntry reports whether name is still the open file.
func sameEntry(dir *os.Root, name string, file *os.File) bool {
	open, err := file.Stat()
	if err != nil {
		return false
	}
	entry, err := dir.Lstat(name)
	return err == nil && os.SameFile(open, entry)
}

// stage writes data to a new temp in dir. like, if not nil, is the file it will
// replace: its permission bits and owner are kept. mode, if not nil, wins.
func Stage(dir *os.Root, data []byte, like fs.FileInfo, mode *fs.FileMode) (*Temp, error) {
	perm := fs.FileMode(0o666)
	if like != nil && !like.Mode().IsRegular() {
		like = nil
	}
	switch {
	case mode != nil:
		perm = mode.Perm()
	case like != nil:
		perm = like.Mode().Perm()
	}
	t, err := NewTemp(dir, func(name string) (*os.File, error) {
		// O_NONBLOCK spares package os from trying it out.
		return dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NONBLOCK, perm)
	})
	if err != nil {
		return nil, err
	}
	t.data = data
	if _, err = t.File.Write(data); err == nil && (mode != nil || like != nil) {
		err = dress(t.File, perm, like)
	}
	if err != nil {
		t.Discard()
		return nil, err
	}
	return t, nil
}

// dress gives the new file the owner of the old one, where we may, and exactly
// the bits of perm, whatever the umask took away.
func dress(file *os.File, perm fs.FileMode, like fs.FileInfo) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if like != nil {
		keepOwner(file, info, like)
	}
	if info.Mode().Perm() == perm {
		return nil
	}
	return file.Chmod(perm)
}

// replace puts the temp in place of base. A file that is itself a mount point
// cannot be replaced, so it is written in place.
func (t *Temp) Replace(base string, durable bool) error {
	if durable {
		if err := t.File.Sync(); err != nil {
			return err
		}
	}
	err := t.rename(base)
	if errors.Is(err, syscall.EBUSY) {
		return overwrite(t.dir, base, t.data)
	}
	if err == nil && durable {
		return syncDir(t.dir, path.Dir(base))
	}
	return err
}

func (t *Temp) rename(base string) error {
	if !RenamesOpen {
		t.File.Close()
	}
	err := t.dir.Rename(t.Name, base)
	t.Gone = err == nil
	return err
}

// discard removes the temp, if it was not renamed, and ends its lock.
func (t *Temp) Discard() error {
	var err error
	if !t.Gone {
		err = RemoveOpen(t.dir, t.Name, t.File)
		t.Gone = true
	}
	t.File.Close()
	freeSlot(t.slot)
	return err
}

// overwrite writes base in place, and the old content back if that fails.
func overwrite(dir *os.Root, base string, data []byte) error {
	file, err := OpenRegular(dir, base, os.O_RDWR)
	if err != nil {
		return err
	}
	defer file.Close()
	old, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	if err = refill(file, data); err != nil {
		_ = refill(file, old) // it fitted before
	}
	return err
}

// openRegular opens base, which was a regular file a moment ago, if it still is:
// reading what somebody put in its place could take for ever.
func OpenRegular(dir *os.Root, base string, flag int) (*os.File, error) {
	file, err := dir.OpenFile(base, flag|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		file.Close()
		return nil, sandbox.ErrNotRegular
	}
	return file, nil
}

func refill(file *os.File, data []byte) error {
	if _, err := file.WriteAt(data, 0); err != nil {
		return err
	}
	return file.Truncate(int64(len(data)))
}
