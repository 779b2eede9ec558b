package quota

import (
	"sync"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/process/internal/tree"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/usage"
)

// Where the kernel does not count for all of a session, somebody looks. The limit of memory is
// passed when two looks find it so: a process that is just starting another seems to
// be two that have all of its memory.
const (
	lookPause   = 250 * time.Millisecond
	memorySlack = 30 // in hundredths of the limit
)

// watch looks after the session while it has commands.
func (r *Ration) watch(c *Rules, s Session) {
	tick := time.NewTicker(lookPause)
	defer tick.Stop()
	for passed := ""; ; {
		<-tick.C
		trees, any := s.Trees()
		if !any && r.rest(s) {
			return
		}
		now := r.passed(c, s)
		if now == "" || now != passed {
			passed = now
			continue
		}
		r.mu.Lock()
		r.verdict, r.ended = now, time.Now()
		r.mu.Unlock()
		killAll(s, trees)
		passed = ""
	}
}

// killAll ends all commands of a session, in namespaces in one step: what forks all
// the time is not listed fast enough.
func killAll(s Session, trees []tree.Tree) {
	for _, i := range s.Spaces() {
		i.KillAll()
	}
	var all sync.WaitGroup
	for _, t := range trees {
		all.Go(t.Kill)
	}
	if !s.Confined() {
		all.Go(tree.Strays{Tmp: s.Mark()}.Kill)
	}
	all.Wait()
}

// Watches reports whether somebody looks after the session.
func (r *Ration) Watches() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.watching
}

// rest ends the watch, unless a command has just begun.
func (r *Ration) rest(s Session) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, r.watching = s.Trees()
	return !r.watching
}

// isolatedJobs counts the commands that have not ended with all that they have started.
func isolatedJobs(s Session) (n int) {
	trees, _ := s.Trees()
	for _, t := range trees {
		if t.Alive() {
			n++
		}
	}
	return n
}

// passed tells which limit the session has passed, "" for none.
func (r *Ration) passed(c *Rules, s Session) string {
	q, u := c.Limits, r.usage(s)
	for _, i := range s.Spaces() {
		i.LookAtMemory(u.AddFiles)
	}
	if q.MaxProcesses > 0 && !r.counts && u.Tasks > q.MaxProcesses { // in several namespaces together
		return c.processesReached()
	}
	most := q.MaxMemory + q.MaxMemory/100*memorySlack
	if q.MaxMemory > 0 && r.how.memory != Exactly && u.AtMost() > most && u.Precisely() > most {
		return c.memoryPassed()
	}
	return ""
}

// usage looks at the session's processes, without files.
func (r *Ration) usage(s Session) (u usage.Usage) {
	isolators := s.Spaces()
	for _, i := range isolators {
		dir, pids := i.Processes()
		u.Add(dir, pids)
	}
	if len(isolators) == 0 {
		u.Add("/proc", r.mark.Bearers())
	} else {
		u.Tasks -= isolatedJobs(s) // each has a process that watches over it
	}
	return u
}
