//go:build amd64 || arm64

package confine

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// What commands leave to the server, however much they take: processes and
// threads below the user's limit, and threads that are made before they are needed,
// because other limits (of a container's processes) cannot be divided.
const (
	processReserve = 64
	threadReserve  = 16
)

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

// reserveThreads has the runtime make threads, which it keeps: one that cannot
// make another when it needs it ends the program.
var reserveThreads = sync.OnceFunc(func() {
	var made sync.WaitGroup
	enough := make(chan struct{})
	made.Add(threadReserve)
	for range threadReserve {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			made.Done()
			<-enough
		}()
	}
	made.Wait()
	close(enough)
})

// memoryShare is the part of the memory that each file system of a session in
// memory may fill.
const memoryShare = 8

// memorySize is the size of such a file system, as an option of its mount. What is
// in it counts as nobody's, so the kernel would end whoever else has much.
func memorySize() string {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return "size=64m"
	}
	size := uint64(info.Totalram) * uint64(info.Unit)
	for _, name := range memoryLimitFiles() {
		text, _ := os.ReadFile(oldRoot + name)
		if limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil {
			size = min(size, limit)
		}
	}
	return fmt.Sprintf("size=%d", size/memoryShare)
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
