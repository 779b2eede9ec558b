package usage

import (
	"sync"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// A Reserve keeps memory for the server where control groups limit what it and its
// commands have together, and files in memory that commands write outlast them: in
// namespaces they end with the session. While the reserve is used up commands cannot
// write to files, and can remove some.
type Reserve struct {
	mu      sync.Mutex
	held    *confine.Reserve // nil: there never was one
	limit   int64
	settled bool // there is none
}

// What is held: part of the limit, and no more than a server needs to go on.
const (
	reservePart = 16
	reserveMost = 32 << 20
)

// Needed reports whether there is a reserve, which is made before the first command.
func (r *Reserve) Needed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held == nil && !r.settled {
		r.make()
		r.settled = r.held == nil
	}
	return !r.settled
}

// Short reports whether the reserve is used up. It is asked when a command, which would be
// ended first, is about to begin: starting it has taken memory, too. The reserve is made
// again as soon as there is room.
func (r *Reserve) Short() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.settled || r.held.Held() {
		return false
	}
	r.make()
	return !r.held.Held()
}

// make makes a reserve where memory is limited and there is room.
func (r *Reserve) make() {
	limit, used := confine.Memory()
	size := min(limit/reservePart, reserveMost)
	if size == 0 || limit-used < 2*size {
		return
	}
	if fresh, err := confine.NewReserve(size); err == nil {
		r.replace(fresh)
		r.limit = limit
	}
}

func (r *Reserve) replace(by *confine.Reserve) {
	if r.held != nil {
		r.held.Close()
	}
	r.held = by
}

func (r *Reserve) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replace(nil)
	r.settled = true
}

// Bound is the memory that this server and its commands may use.
func (r *Reserve) Bound() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.limit
}

// NoFiles has a program write to no file.
var NoFiles = proc.Bounds{Limits: map[int]unix.Rlimit{unix.RLIMIT_FSIZE: {}}}
