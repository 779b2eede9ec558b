package signature

import (
	"crypto/sha256"
	"sync"
	"time"
)

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
