// Package signature tells whether a file is still what it was, without reading it:
// start with [Of]. A [Memory] keeps what was found out by reading.
package signature

import (
	"crypto/sha256"
	"io/fs"
	"sync"
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

// A Hash is the SHA-256 of a file's content.
type Hash = [sha256.Size]byte

// A Memory remembers the hashes of files, under their signatures. The zero value is ready.
type Memory struct {
	mu sync.Mutex
	m  map[string]remembered
}

type remembered struct {
	sig Signature
	sum Hash
}

const maxRemembered = 65_536 // some 16 MiB; beyond, the memory starts anew

// Get returns the hash of a file that still has the signature.
func (m *Memory) Get(path string, sig Signature) (Hash, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.m[path]
	return r.sum, ok && r.sig == sig
}

// Put remembers the hash of content read at the given time, if the signature can vouch for it.
func (m *Memory) Put(path string, sig Signature, read time.Time, sum Hash) {
	if !sig.Settled(read) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.m == nil || len(m.m) >= maxRemembered {
		m.m = make(map[string]remembered)
	}
	m.m[path] = remembered{sig, sum}
}
