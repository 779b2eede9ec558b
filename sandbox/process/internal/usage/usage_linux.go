package usage

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A Usage is what a session uses, as far as was looked at.
type Usage struct {
	processes []string // their directories in a /proc
	Tasks     int      // with threads
	resident  int64    // bytes, each process for itself
	files     int64    // bytes, in file systems in memory
	devices   []string // of those, as maps name them
}

// AtMost is more than is used: what processes share counts for each.
func (u Usage) AtMost() int64 { return u.resident + u.files }

// Add adds processes by their ids in proc, which is /proc or looks like it. Who has ended meanwhile adds nothing.
func (u *Usage) Add(proc string, pids []int) {
	for _, pid := range pids {
		dir := filepath.Join(proc, strconv.Itoa(pid))
		status := numbers(dir + "/status")
		u.processes = append(u.processes, dir)
		u.Tasks += int(status["Threads"])
		u.resident += (status["RssAnon"] + status["RssShmem"] + status["VmSwap"]) << 10
	}
}

// AddFiles adds what lies in a file system.
func (u *Usage) AddFiles(fd int) {
	var fs unix.Statfs_t
	var st unix.Stat_t
	if unix.Fstatfs(fd, &fs) == nil && unix.Fstat(fd, &st) == nil {
		u.files += int64(fs.Blocks-fs.Bfree) * fs.Bsize
		u.devices = append(u.devices, fmt.Sprintf("%02x:%02x", unix.Major(st.Dev), unix.Minor(st.Dev)))
	}
}

// Precisely is what is used, what processes share counted once: a look into the tables
// of pages, which takes a while. A process that cannot be looked into counts in full.
func (u Usage) Precisely() int64 {
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
