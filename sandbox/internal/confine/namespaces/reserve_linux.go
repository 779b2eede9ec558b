//go:build amd64 || arm64

package namespaces

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// A Reserve is memory that processes hold for this program: where control groups limit
// what all have, they are ended after all commands and before this program when no
// more is left, which then has some. Files in memory that commands leave behind would
// have this program ended otherwise.
type Reserve struct{ keepers []*Keeper }

// reserveScores have the kernel take commands first (1000), and this program last. There
// are two processes: while one is still ending, the kernel may want another.
var reserveScores = []string{"900", "800"}

// NewReserve holds memory.
func NewReserve(bytes int64) (*Reserve, error) {
	r := &Reserve{}
	for _, score := range reserveScores {
		k, err := makeKeeper(0)
		if err == nil {
			r.keepers = append(r.keepers, k)
			err = k.hold(bytes/int64(len(reserveScores)), score)
		}
		if err != nil {
			r.Close()
			return nil, fmt.Errorf("a reserve of memory: %w", err)
		}
	}
	return r, nil
}

// hold has a keeper without namespaces hold memory, and commands out of it.
func (k *Keeper) hold(bytes int64, score string) error {
	if err := k.writeProc("oom_score_adj", score); err != nil {
		return err
	}
	e, err := k.do(unix.SYS_MMAP, 0, uintptr(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE, ^uintptr(0))
	if err == nil && e != 0 {
		err = e
	}
	if err == nil {
		_, err = k.do(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0)
	}
	return err
}

// Held reports whether all of the memory is still held, and by nobody who is being ended.
func (r *Reserve) Held() bool {
	return !slices.ContainsFunc(r.keepers, func(k *Keeper) bool { return !k.lives() })
}

func (k *Keeper) lives() bool {
	line := []unix.PollFd{{Fd: int32(k.line), Events: unix.POLLRDHUP}}
	if n, err := unix.Poll(line, 0); k.line < 0 || err != nil || n != 0 {
		return false
	}
	const killed = 1 << (unix.SIGKILL - 1)
	pending, err := strconv.ParseUint(proc.StatusField(k.PID, "ShdPnd"), 16, 64)
	return err == nil && pending&killed == 0
}

// Close gives the memory back.
func (r *Reserve) Close() {
	for _, k := range r.keepers {
		k.close()
	}
}

// Memory tells how much memory control groups let this program and its commands have,
// and how much of that cannot be had back: that of processes, and of files in memory. The
// limit is 0 where there is none.
func Memory() (limit, used int64) {
	most, group := memoryLimit("")
	if most == 0 {
		return 0, 0
	}
	used, _ = usedBy(group)
	return int64(most), used
}

// FilledByFiles reports whether less than room is left of that memory, and files in memory
// take most of it.
func FilledByFiles(room int64) bool {
	most, group := memoryLimit("")
	limit := int64(most)
	if limit == 0 || limit-chargedTo(group) >= room {
		return false
	}
	used, files := usedBy(group)
	return limit-used < room && files > limit/2
}

// chargedTo is what a group has, with what can be had back.
func chargedTo(group string) (all int64) {
	for _, name := range []string{"memory.current", "memory.usage_in_bytes"} { // of version 2, and of 1
		text, _ := os.ReadFile(filepath.Join(group, name)) // one of them is there
		n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		all += n
	}
	return all
}

// usedBy is what a group has and cannot give back, and how much of that are files.
func usedBy(group string) (used, files int64) {
	used = chargedTo(group)
	text, _ := os.ReadFile(group + "/memory.stat") // nothing can be had back
	cache := int64(0)
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch name {
		case "file", "total_cache":
			cache += n
		case "shmem", "total_shmem":
			files += n // which the kernel cannot give back
		}
	}
	return used - max(cache-files, 0), files // not all is counted at once
}
