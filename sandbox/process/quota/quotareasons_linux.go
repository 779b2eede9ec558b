package quota

import (
	"fmt"

	"github.com/perstack-ai/perstack-base/sandbox/internal/lazyregexp"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/usage"
)

// What programs say when they get no memory, and no process or thread.
var (
	noMemory  = lazyregexp.New(`(?i)cannot allocate memory|can't allocate|out of memory|memory ?exhausted|MemoryError|\bENOMEM\b|std::bad_alloc|OutOfMemory|allocation failed|not enough (?:space|memory)`)
	noProcess = lazyregexp.New(`(?i)resource temporarily unavailable|can(?:no|')t fork|unable to fork|can't start new thread|unable to create (?:new )?(?:native )?thread|\bEAGAIN\b|failed to create new OS thread`)
)

// Reasons tell by which limit a command was ended, or something refused to it, a
// sentence each.
func (r *Ration) Reasons(c *Rules, e Ended) (all []string) {
	r.mu.Lock()
	group, verdict := r.counter, r.verdict
	if r.ended.Before(e.Began) {
		verdict = ""
	}
	r.mu.Unlock()
	if verdict != "" {
		return []string{verdict}
	}
	before, starved := e.Before, false
	if before.short != nil && before.short.Load() {
		return []string{filesFill(c.Reserve.Bound())}
	}
	if group != nil {
		now := group.Events()
		killed := now.MemoryKilled > before.events.MemoryKilled
		switch starved = killed; {
		case killed && c.MaxMemory > 0 && now.MemoryReached > before.events.MemoryReached:
			all = append(all, c.memoryPassed())
		case killed:
			all = append(all, machineStarved)
		}
		if now.ProcessesRefuse > before.events.ProcessesRefuse {
			e.Tree.Kill() // what is left of it is broken, and in the way of the next
			all = append(all, c.processesReached())
		}
	}
	if !starved && e.Killed && usage.MachineKills.Now() > before.killed {
		all = append(all, machineStarved)
	}
	return append(all, r.fromWords(c, e)...)
}

// fromWords goes by what a program says where the kernel counts nothing of that.
func (r *Ration) fromWords(c *Rules, e Ended) (all []string) {
	if r.mark == 0 {
		return nil
	}
	said := e.Stderr() // whatever the exit code: a pipe or "|| true" hides it
	if e.Failed {
		said += e.Stdout()
	}
	if c.MaxMemory > 0 && r.how.memory != Exactly && noMemory.MatchString(said) {
		all = append(all, fmt.Sprintf("%s %s reached: no process may have more; use less, or ask the user to raise it", MaxMemoryFlag, SizeText(c.MaxMemory)))
	}
	if c.countedInNamespace() && !r.counts && noProcess.MatchString(said) {
		all = append(all, c.processesReached())
	}
	return all
}

// machineStarved: memory has run out, and commands go first.
const machineStarved = "out of memory on this machine: the system has ended processes; use less memory"

func (c *Rules) memoryPassed() string {
	return fmt.Sprintf("ended because the session's commands used more than %s %s: use less at once, or ask the user to raise it", MaxMemoryFlag, SizeText(c.MaxMemory))
}

func (c *Rules) processesReached() string {
	if n := c.MaxProcesses; n > 0 {
		return fmt.Sprintf("%s %d reached: run fewer processes and threads at once, end what earlier commands left running, or ask the user to raise it", MaxProcessesFlag, n)
	}
	return fmt.Sprintf("the session's limit of %d processes is reached: end what earlier commands left running, or ask the user to raise it by %s", c.mostProcesses(), MaxProcessesFlag)
}

// filesFill tells what the reserve of memory was used up by, and what to do.
func filesFill(limit int64) string {
	return fmt.Sprintf("out of memory on this machine: files in memory, as in /dev/shm, fill the %s that this server and its commands may use, so commands cannot write to files until some of those are removed", SizeText(limit))
}
