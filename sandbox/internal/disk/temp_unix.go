//go:build unix

package disk

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// renamesOpen: an open file can be renamed and removed here.
const RenamesOpen = true

// lockFile takes the advisory lock of a temp without waiting: shared by owners,
// exclusive for whoever wants to remove it.
func LockFile(file *os.File, exclusive bool) bool {
	how := unix.LOCK_SH
	if exclusive {
		how = unix.LOCK_EX
	}
	return unix.Flock(int(file.Fd()), how|unix.LOCK_NB) == nil
}

func RemoveOpen(dir *os.Root, name string, _ *os.File) error { return dir.Remove(name) }

// keepOwner gives file the owner of like. Where that is not permitted the new
// owner stays, as it does for every program that replaces a file.
func keepOwner(file *os.File, now, like fs.FileInfo) {
	a, ok1 := now.Sys().(*syscall.Stat_t)
	b, ok2 := like.Sys().(*syscall.Stat_t)
	if ok1 && ok2 && (a.Uid != b.Uid || a.Gid != b.Gid) {
		_ = file.Chown(int(b.Uid), int(b.Gid))
	}
}

// ownedByOther reports whether the mode bits of the owner say nothing about us.
func OwnedByOther(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	uid := os.Geteuid()
	return ok && uid != 0 && int(stat.Uid) != uid
}

// ownedByUs reports whether a file is this user's, also when that is root.
func OwnedByUs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// syncDir makes a rename in dir durable.
func syncDir(dir *os.Root, name string) error {
	file, err := dir.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	return file.Sync()
}
