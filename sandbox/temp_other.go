//go:build !unix

package sandbox

import (
	"io/fs"
	"os"
)

// renamesOpen: an open file can be neither renamed nor removed here, so being
// open is the lock.
const renamesOpen = false

func lockFile(*os.File, bool) bool { return true }

func removeOpen(dir *os.Root, name string, file *os.File) error {
	file.Close()
	return dir.Remove(name)
}

func keepOwner(*os.File, fs.FileInfo, fs.FileInfo) {}

func ownedByOther(fs.FileInfo) bool { return false }

func ownedByUs(fs.FileInfo) bool { return true }

func syncDir(*os.Root, string) error { return nil }
