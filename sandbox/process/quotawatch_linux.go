package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/process/internal/tree"
	"golang.org/x/sys/unix"
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
		i.LookAtMemory(u.addFiles)
	}
	if q.MaxProcesses > 0 && !r.counts && u.tasks > q.MaxProcesses { // in several namespaces together
		return s.c.processesReached()
	}
	most := q.MaxMemory + q.MaxMemory/100*memorySlack
	if q.MaxMemory > 0 && r.how.memory != Exactly && u.atMost() > most && u.precisely() > most {
		return s.c.memoryPassed()
	}
	return ""
}

// A usage is what a session uses, as far as was looked at.
type usage struct {
	processes []string // their directories in a /proc
	tasks     int      // with threads
	resident  int64    // bytes, each process for itself
	files     int64    // bytes, in file systems in memory
	devices   []string // of those, as maps name them
}

// atMost is more than is used: what processes share counts for each.
func (u usage) atMost() int64 { return u.resident + u.files }

// usage looks at the session's processes, without files.
func (r *ration) usage(s *Shell) (u usage) {
	isolators := s.session.isolators()
	for _, i := range isolators {
		dir, pids := i.Processes()
		u.add(dir, pids)
	}
	if len(isolators) == 0 {
		u.add("/proc", r.mark.Bearers())
	} else {
		u.tasks -= isolatedJobs(s) // each has a process that watches over it
	}
	return u
}

func (u *usage) add(proc string, pids []int) {
	for _, pid := range pids {
		dir := filepath.Join(proc, strconv.Itoa(pid))
		status := numbers(dir + "/status")
		u.processes = append(u.processes, dir)
		u.tasks += int(status["Threads"])
		u.resident += (status["RssAnon"] + status["RssShmem"] + status["VmSwap"]) << 10
	}
}

// addFiles adds what lies in a file system.
func (u *usage) addFiles(fd int) {
	var fs unix.Statfs_t
	var st unix.Stat_t
	if unix.Fstatfs(fd, &fs) == nil && unix.Fstat(fd, &st) == nil {
		u.files += int64(fs.Blocks-fs.Bfree) * fs.Bsize
		u.devices = append(u.devices, fmt.Sprintf("%02x:%02x", unix.Major(st.Dev), unix.Minor(st.Dev)))
	}
}

// precisely is what is used, what processes share counted once: a look into the tables
// of pages, which takes a while. A process that cannot be looked into counts in full.
func (u usage) precisely() int64 {
	sum := u.files
	for _, dir := range u.processes {
		all := numbers(dir + "/smaps_rollup")
		if len(all) == 0 {
			status := numbers(dir + "/status")
			sum += (status["RssAnon"] + status["RssShmem"]) << 10
			continue
		}
		sum += (all["Pss_Anon"] + all["Pss_Shmem"] + all["SwapPss"]) << 10
		if u.files > 0 && all["Pss_Shmem"] > 0 {
			sum -= mapped(dir+"/smaps", u.devices)
		}
	}
	return sum
}

// mapped is how much of files on devices a process has mapped: it counts as files.
func mapped(smaps string, devices []string) (sum int64) {
	text, _ := os.ReadFile(smaps) // it may have ended
	counts := false
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) >= 5 && strings.Contains(fields[0], "-") {
			counts = slices.Contains(devices, fields[3])
		} else if counts && len(fields) == 3 && fields[0] == "Pss:" {
			kilobytes, _ := strconv.ParseInt(fields[1], 10, 64)
			sum += kilobytes << 10
		}
	}
	return sum
}

// numbers reads a file of /proc that has lines of a name and a number.
func numbers(path string) map[string]int64 {
	text, _ := os.ReadFile(path) // it may have ended
	all := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		if fields := strings.Fields(value); len(fields) > 0 {
			if n, err := strconv.ParseInt(fields[0], 10, 64); err == nil {
				all[name] = n
			}
		}
	}
	return all
}
