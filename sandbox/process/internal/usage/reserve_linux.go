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

// Short reports whether the reserve is used up, or has to be: files may leave so little
// that a command would be ended before anything touches the reserve. It is asked when a command, which would be
// ended first, is about to begin: starting it has taken memory, too. The reserve is made
// again as soon as there is room.
func (r *Reserve) Short() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.settled:
		return false
	case r.held.Held():
		if !confine.FilledByFiles(r.size() / 2) {
			return false
		}
		r.held.Close() // no command had room to begin, and so to remove anything
	default:
		r.make()
	}
	return !r.held.Held()
}

// size is how much is held.
func (r *Reserve) size() int64 { return min(r.limit/reservePart, reserveMost) }

// make makes a reserve where memory is limited and there is room.
func (r *Reserve) make() {
	limit, used := confine.Memory()
	r.limit = limit
	if limit == 0 || limit-used < 2*r.size() {
		return
	}
	if fresh, err := confine.NewReserve(r.size()); err == nil {
		r.replace(fresh)
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
