//go:build amd64 || arm64

package confine

import (
	"maps"
	"os"
	"os/signal"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// leaders are the processes that Start's callers started and wait for.
var leaders = pidSet{pids: map[int]bool{}}

// watchers are the children that newWatcher made.
var watchers = pidSet{pids: map[int]bool{}}

type pidSet struct {
	mu   sync.Mutex
	pids map[int]bool
}

func (s *pidSet) add(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pids[pid] = true
}

func (s *pidSet) remove(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pids, pid)
}

func (s *pidSet) has(pid int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pids[pid]
}

// list returns those known now.
func (s *pidSet) list() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.pids))
}

// keep forgets those of the listed that are not among the given processes any
// more. One that was added after the list was made stays: the processes may
// have been looked at before it was born.
func (s *pidSet) keep(listed []int, children map[int]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pid := range listed {
		if !children[pid] {
			delete(s.pids, pid)
		}
	}
}

// reapOrphans takes the exit states that nobody waits for. It never takes one
// that the caller of Start or os/exec may be about to take: a process is an
// orphan when it is no leader, is confined (or we are PID 1, where every orphan
// ends up), and was left a zombie for one whole round.
func reapOrphans() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	for range ended {
		for before := map[int]bool(nil); ; {
			time.Sleep(time.Second)
			zombies := orphanZombies()
			for pid := range zombies {
				if before[pid] {
					_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
				}
			}
			if before = zombies; len(zombies) == 0 {
				break
			}
		}
	}
}

func orphanZombies() map[int]bool {
	me := os.Getpid()
	listed, children, zombies := leaders.list(), map[int]bool{}, map[int]bool{}
	for _, p := range processes() {
		if p.parent == me {
			children[p.pid] = true
			if p.zombie && !leaders.has(p.pid) && (me == 1 || statusField(p.pid, "NoNewPrivs") == "1") {
				zombies[p.pid] = true
			}
		}
	}
	leaders.keep(listed, children)
	return zombies
}
