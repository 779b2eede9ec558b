// Package signature tells whether a file is still what it was, without reading it:
// start with [Of]. A [Memory] keeps what was found out by reading.
package signature

import (
	"io/fs"
	"time"
)

// A Signature tells one state of a file from another without reading it.
type Signature struct {
	size    int64
	mtime   int64 // nanoseconds
	ctime   int64 // nanoseconds, 0 where the system does not tell
	dev, id uint64
}

// Of is the signature of the file that an info is about.
func Of(info fs.FileInfo) Signature {
	s := Signature{size: info.Size(), mtime: info.ModTime().UnixNano()}
	s.dev, s.id, s.ctime = identity(info)
	return s
}

// Tells reports whether the system tells files apart by more than their state.
func (s Signature) Tells() bool { return s.id != 0 }

// SameFile reports whether an info is about the same file, as far as the system tells.
func (s Signature) SameFile(info fs.FileInfo) bool {
	other := Of(info)
	return s.dev == other.dev && s.id == other.id
}

// Settled reports whether a file with this signature, read at the given time, can
// no longer change without changing its signature: clocks of file systems tick
// in steps, some of a few milliseconds and some, which show whole seconds, of two.
func (s Signature) Settled(read time.Time) bool {
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
