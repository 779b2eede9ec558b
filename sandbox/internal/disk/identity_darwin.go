package disk

import (
	"io/fs"
	"syscall"
)

// identity is the number and the change time of a file.
func Identity(info fs.FileInfo) (inode uint64, ctime int64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return st.Ino, syscall.TimespecToNsec(st.Ctimespec)
}
