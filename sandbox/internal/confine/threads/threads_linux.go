//go:build amd64 || arm64

package threads

import (
	"fmt"
	"sync"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/broker"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// The runtime ends the program when it needs a thread and the system refuses it,
// and commands can have the system refuse any. So what they can block is bounded,
// and the threads for all of it are made before a command runs.

// threads are those of the runtime that commands need.
var threads threadCount

type threadCount struct {
	mu      sync.Mutex
	domains int // each has a thread wait for its command
	locked  int // threads that end with what they run
	busy    map[*Confiner]int
}

// Begin begins to make those that the first domains can occupy. It returns at once.
func Begin() {
	go func() { _ = kernel.MakeThreads(threads.wanted(1, 2, 2)) }() // where it fails, add tells
}

// wanted is how many threads the runtime has to have made for so many.
func (*threadCount) wanted(busy, domains, locked int) int {
	return kernel.ThreadReserve + cap(broker.CommonSeats) + busy + domains + locked
}

// add makes the threads that another domain of a session can occupy.
func (t *threadCount) add(c *Confiner) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if most := proc.MostCommands(); most > 0 && t.domains >= most {
		return fmt.Errorf("%d commands run or are prepared, and the system's limit of processes per user has room for no more: "+
			"end what earlier commands left running", t.domains)
	}
	if t.busy == nil {
		t.busy = map[*Confiner]int{}
	}
	t.domains++
	t.locked++
	t.busy[c]++
	err := kernel.MakeThreads(t.wanted(len(t.busy), t.domains, t.locked))
	if err != nil {
		t.locked--
		t.drop(c)
	}
	return err
}

// unlock says that a domain's thread has ended.
func (t *threadCount) unlock() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.locked--
}

func (t *threadCount) remove(c *Confiner) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(c)
}

func (t *threadCount) drop(c *Confiner) {
	t.domains--
	if t.busy[c]--; t.busy[c] == 0 {
		delete(t.busy, c)
	}
}
