package network

import "sync"

// A room bounds the relays of all gates together. Each gate may have as many as it
// leaves free: half of the room when it is alone, and never so many that the next
// session finds none.
type room struct {
	size func() int

	mu   sync.Mutex
	used int
}

const (
	relaysOfAll = 1024 // at a time
	// A relay has two sockets, and a pipe in each direction when it moves much.
	relayDescriptors = 6
)

// everyGate is the room of this process.
var everyGate = &room{size: sync.OnceValue(func() int { return roomFor(descriptors()) })}

// roomFor leaves half of the descriptors to everything else.
func roomFor(descriptors uint64) int {
	return int(max(2, min(relaysOfAll, descriptors/2/relayDescriptors)))
}

// enter counts a relay more for a gate that has some. It fails where there is no room.
func (r *room) enter(has int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if has >= r.size()-r.used {
		return false
	}
	r.used++
	return true
}

func (r *room) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used--
}
