//go:build !unix

package disk

import (
	"io/fs"
	"os"
)

// renamesOpen: an open file can be neither renamed nor removed here, so being
// open is the lock.
const RenamesOpen = false

func LockFile(*os.File, bool) bool { return true }

func RemoveOpen(dir *os.Root, name string, file *os.File) error {
	file.Close()
	return dir.Remove(name)
}

func keepOwner(*os.File, fs.FileInfo, fs.FileInfo) {}

func OwnedByOther(fs.FileInfo) bool { return false }

func OwnedByUs(fs.FileInfo) bool { return true }

func syncDir(*os.Root, string) error { return nil }
