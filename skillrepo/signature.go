package skillrepo

import (
	"io/fs"
	"time"
)

// A signature tells one state of a file from another without reading it.
type signature struct {
	size    int64
	mtime   int64 // nanoseconds
	ctime   int64 // nanoseconds, 0 where the system does not tell
	dev, id uint64
}

func signatureOf(info fs.FileInfo) signature {
	s := signature{size: info.Size(), mtime: info.ModTime().UnixNano()}
	s.dev, s.id, s.ctime = identity(info)
	return s
}

// sameFile reports whether two infos are about one file, as far as the system tells.
func sameFile(a, b fs.FileInfo) bool {
	x, y := signatureOf(a), signatureOf(b)
	return x.dev == y.dev && x.id == y.id
}

// settled reports whether a file with this signature, read at the given time, can
// no longer change without changing its signature: clocks of file systems tick
// in steps, some of a few milliseconds and some, which show whole seconds, of two.
func (s signature) settled(read time.Time) bool {
	const fine, coarse = 20 * time.Millisecond, 2 * time.Second
	last, step := s.ctime, fine
	if last == 0 {
		last = s.mtime
	}
	if last%int64(time.Second) == 0 {
		step = coarse
	}
	return read.UnixNano()-last > int64(step)
}
