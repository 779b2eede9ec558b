package process

import (
	"fmt"
	"regexp"

	"github.com/perstack-ai/perstack-base/sandbox/process/capture"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/usage"
)

// What programs say when they get no memory, and no process or thread.
var (
	noMemory  = regexp.MustCompile(`(?i)cannot allocate memory|can't allocate|out of memory|memory ?exhausted|MemoryError|\bENOMEM\b|std::bad_alloc|OutOfMemory|allocation failed|not enough (?:space|memory)`)
	noProcess = regexp.MustCompile(`(?i)resource temporarily unavailable|can(?:no|')t fork|unable to fork|can't start new thread|unable to create (?:new )?(?:native )?thread|\bEAGAIN\b|failed to create new OS thread`)
)

// reasons tell by which limit a command was ended, or something refused to it, a
// sentence each.
func (r *ration) reasons(j *job, res *Result) (all []string) {
	r.mu.Lock()
	group, verdict := r.counter, r.verdict
	if r.ended.Before(j.began) {
		verdict = ""
	}
	r.mu.Unlock()
	if verdict != "" {
		return []string{verdict}
	}
	c := j.shell.c
	before, starved := j.account, false
	if before.short != nil && before.short.Load() {
		return []string{filesFill(c.reserve.Bound())}
	}
	if group != nil {
		now := group.Events()
		killed := now.MemoryKilled > before.events.MemoryKilled
		switch starved = killed; {
		case killed && c.cfg.Quota.MaxMemory > 0 && now.MemoryReached > before.events.MemoryReached:
			all = append(all, c.memoryPassed())
		case killed:
			all = append(all, machineStarved)
		}
		if now.ProcessesRefuse > before.events.ProcessesRefuse {
			j.tree.Kill() // what is left of it is broken, and in the way of the next
			all = append(all, c.processesReached())
		}
	}
	if !starved && res.killedFromOutside() && usage.MachineKills.Now() > before.killed {
		all = append(all, machineStarved)
	}
	return append(all, r.fromWords(c, j, res)...)
}

// killedFromOutside reports whether a command was killed, and not by this server.
func (r *Result) killedFromOutside() bool {
	const killed = 128 + 9 // as shells tell
	return !r.TimedOut && !r.Cancelled && r.ExitCode == killed
}

// fromWords goes by what a program says where the kernel counts nothing of that.
func (r *ration) fromWords(c *Commands, j *job, res *Result) (all []string) {
	if r.mark == 0 {
		return nil
	}
	said := capture.ValidText(res.Stderr.Head) + capture.ValidText(res.Stderr.Tail) // whatever the exit code: a pipe or "|| true" hides it
	if res.ExitCode != 0 {
		said += capture.ValidText(res.Stdout.Head) + capture.ValidText(res.Stdout.Tail)
	}
	if c.cfg.Quota.MaxMemory > 0 && r.how.memory != Exactly && noMemory.MatchString(said) {
		all = append(all, fmt.Sprintf("%s %s reached: no process may have more; use less, or ask the user to raise it", maxMemoryFlag, SizeText(c.cfg.Quota.MaxMemory)))
	}
	if c.countedInNamespace() && !r.counts && noProcess.MatchString(said) {
		all = append(all, c.processesReached())
	}
	return all
}

// machineStarved: memory has run out, and commands go first.
const machineStarved = "out of memory on this machine: the system has ended processes; use less memory"

func (c *Commands) memoryPassed() string {
	return fmt.Sprintf("ended because the session's commands used more than %s %s: use less at once, or ask the user to raise it", maxMemoryFlag, SizeText(c.cfg.Quota.MaxMemory))
}

func (c *Commands) processesReached() string {
	if n := c.cfg.Quota.MaxProcesses; n > 0 {
		return fmt.Sprintf("%s %d reached: run fewer processes and threads at once, end what earlier commands left running, or ask the user to raise it", maxProcessesFlag, n)
	}
	return fmt.Sprintf("the session's limit of %d processes is reached: end what earlier commands left running, or ask the user to raise it by %s", c.mostProcesses(), maxProcessesFlag)
}

// filesFill tells what the reserve of memory was used up by, and what to do.
func filesFill(limit int64) string {
	return fmt.Sprintf("out of memory on this machine: files in memory, as in /dev/shm, fill the %s that this server and its commands may use, so commands cannot write to files until some of those are removed", SizeText(limit))
}
