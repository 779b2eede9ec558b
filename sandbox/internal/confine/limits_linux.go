//go:build amd64 || arm64

package confine

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// processReserve is how many processes and threads below the user's limit commands
// in namespaces leave to the server.
const processReserve = 64

// processLimit is how many processes this user's commands may have the user reach.
func processLimit() (limit unix.Rlimit, err error) {
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &limit); err != nil {
		return limit, err
	}
	if limit.Cur != unix.RLIM_INFINITY {
		limit.Cur = max(limit.Cur, 2*processReserve) - processReserve
	}
	limit.Max = limit.Cur
	return limit, nil
}

// reserveThreads makes what the server needs beside commands in namespaces. That
// fails where there is little room, of which the command's start tells.
var reserveThreads = sync.OnceFunc(func() { _ = makeThreads(threadReserve) })

// memoryShare is the part of the memory that each file system of a session in
// memory may fill.
const memoryShare = 8

// memorySize is the size of such a file system, as an option of its mount: a part of
// the memory, and most where that is asked for. What is in it counts as nobody's, so
// the kernel would end whoever else has much.
func memorySize(most int64) string {
	size := memoryPart()
	if most > 0 {
		size = min(size, uint64(most))
	}
	return fmt.Sprintf("size=%d", size)
}

// memoryPart is the part of the memory that each file system may fill.
func memoryPart() uint64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 64 << 20
	}
	size := uint64(info.Totalram) * uint64(info.Unit)
	for _, name := range memoryLimitFiles() {
		text, _ := os.ReadFile(oldRoot + name)
		if limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil {
			size = min(size, limit)
		}
	}
	return size / memoryShare
}

// memoryLimitFiles are where the limits of this process's control groups stand,
// in either version.
func memoryLimitFiles() (names []string) {
	text, _ := os.ReadFile(oldRoot + "/proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 || parts[1] != "" && parts[1] != "memory" {
			continue
		}
		top, file := "/sys/fs/cgroup", "memory.max"
		if parts[1] == "memory" {
			top, file = top+"/memory", "memory.limit_in_bytes"
		}
		for dir := parts[2]; ; dir = filepath.Dir(dir) {
			names = append(names, filepath.Join(top, dir, file))
			if dir == "/" || dir == "." {
				break
			}
		}
	}
	return names
}
