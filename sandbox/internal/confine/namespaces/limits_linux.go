//go:build amd64 || arm64

package namespaces

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"golang.org/x/sys/unix"
)

// ProcessReserve is how many processes and threads below the user's limit commands
// in namespaces leave to the server.
const ProcessReserve = 64

// processLimit is how many processes this user's commands may have the user reach.
func processLimit() (limit unix.Rlimit, err error) {
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &limit); err != nil {
		return limit, err
	}
	if limit.Cur != unix.RLIM_INFINITY {
		limit.Cur = max(limit.Cur, 2*ProcessReserve) - ProcessReserve
	}
	limit.Max = limit.Cur
	return limit, nil
}

// reserveThreads makes what the server needs beside commands in namespaces. That
// fails where there is little room, of which the command's start tells.
var reserveThreads = sync.OnceFunc(func() { _ = kernel.MakeThreads(kernel.ThreadReserve) })

// MemoryShare is the part of the memory that each file system of a session in
// memory may fill.
const MemoryShare = 8

// MemorySize is the size of such a file system, as an option of its mount: a part of
// the memory, and most where that is asked for. What is in it counts as nobody's, so
// the kernel would end whoever else has much.
func MemorySize(most int64) string {
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
	if limit, _ := memoryLimit(oldRoot); limit > 0 {
		size = min(size, limit)
	}
	return size / MemoryShare
}

// memoryLimit is the lowest limit of this process's control groups, in either version,
// as files below root tell, and the directory of the one that has it; 0 for none.
func memoryLimit(root string) (most uint64, group string) {
	text, _ := os.ReadFile(root + "/proc/self/cgroup")
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
			text, _ := os.ReadFile(root + filepath.Join(top, dir, file))
			limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
			if err == nil && limit < unlimited && (most == 0 || limit < most) {
				most, group = limit, filepath.Join(top, dir)
			}
			if dir == "/" || dir == "." {
				break
			}
		}
	}
	return most, group
}

// unlimited is less than what version 1 says for no limit, and more than any machine has.
const unlimited = 1 << 60
