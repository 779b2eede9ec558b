package usage

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// kills counts what the machine has ended for want of memory.
type kills struct {
	mu    sync.Mutex
	count int
	at    time.Time
}

var MachineKills kills

// killsLast is how long a count is good for, before a command begins: reading it takes
// longer than all else that is read then.
const killsLast = time.Second

// Read is the count, or a recent one.
func (k *kills) Read() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.at) > killsLast {
		k.look()
	}
	return k.count
}

// Now is the count.
func (k *kills) Now() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.look()
	return k.count
}

func (k *kills) look() {
	text, _ := os.ReadFile("/proc/vmstat") // nothing is counted
	for line := range strings.Lines(string(text)) {
		if n, err := fmt.Sscanf(line, "oom_kill %d", &k.count); n == 1 && err == nil {
			break
		}
	}
	k.at = time.Now()
}
