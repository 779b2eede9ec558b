package process

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
func (r *ration) watch(s *Shell) {
	tick := time.NewTicker(lookPause)
	defer tick.Stop()
	for passed := ""; ; {
		<-tick.C
		jobs, any := s.jobs()
		if !any && r.rest(s) {
			return
		}
		now := r.passed(s)
		if now == "" || now != passed {
			passed = now
			continue
		}
		r.mu.Lock()
		r.verdict, r.ended = now, time.Now()
		r.mu.Unlock()
		s.killAll(jobs)
		passed = ""
	}
}

// killAll ends all commands of a session, in namespaces in one step: what forks all
// the time is not listed fast enough.
func (s *Shell) killAll(jobs []*job) {
	for _, i := range s.session.isolators() {
		i.KillAll()
	}
	var all sync.WaitGroup
	for _, j := range jobs {
		all.Go(j.tree.Kill)
	}
	if !s.session.confined() {
		all.Go(tree.Strays{Tmp: s.session.mark()}.Kill)
	}
	all.Wait()
}

// rest ends the watch, unless a command has just begun.
func (r *ration) rest(s *Shell) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, r.watching = s.jobs()
	return !r.watching
}

// jobs are the commands of which something may run; any counts those that are being
// started, too.
func (s *Shell) jobs() (all []*job, any bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for j := range s.running {
		if j.planted.Load() {
			all = append(all, j)
		}
	}
	return append(all, s.left...), len(s.running)+len(s.left) > 0
}

// isolatedJobs counts the commands that have not ended with all that they have started.
func isolatedJobs(s *Shell) (n int) {
	jobs, _ := s.jobs()
	for _, j := range jobs {
		if j.tree.Alive() {
			n++
		}
	}
	return n
}

// passed tells which limit the session has passed, "" for none.
func (r *ration) passed(s *Shell) string {
	q, u := s.c.cfg.Quota, r.usage(s)
	for _, i := range s.session.isolators() {
		i.LookAtMemory(u.AddFiles)
	}
	if q.MaxProcesses > 0 && !r.counts && u.Tasks > q.MaxProcesses { // in several namespaces together
		return s.c.processesReached()
	}
	most := q.MaxMemory + q.MaxMemory/100*memorySlack
	if q.MaxMemory > 0 && r.how.memory != Exactly && u.AtMost() > most && u.Precisely() > most {
		return s.c.memoryPassed()
	}
	return ""
}

// usage looks at the session's processes, without files.
func (r *ration) usage(s *Shell) (u usage.Usage) {
	isolators := s.session.isolators()
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
