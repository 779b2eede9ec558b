package signature

import (
	"io/fs"
	"syscall"
)

// identity is the device, the inode and the change time of a file.
func identity(info fs.FileInfo) (dev, id uint64, ctime int64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, 0
	}
	return uint64(st.Dev), st.Ino, syscall.TimespecToNsec(st.Ctimespec)
}
