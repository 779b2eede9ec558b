package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// settle gives back what only the start needed: garbage, whose collection would otherwise
// fall into the first command, and code that runs once, two fifths of what an idle server
// would count as its memory. An editor starts many servers, most of which wait most of the
// time. Code that is needed again is mapped again out of the kernel's cache, 64 KiB at a
// time: the first call after it takes a tenth of a millisecond longer, at most.
func settle() {
	runtime.GC()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(maps)) {
		var from, to, offset, major, minor, inode uintptr
		n, _ := fmt.Sscanf(line, "%x-%x r-xp %x %x:%x %d", &from, &to, &offset, &major, &minor, &inode)
		if n == 6 && inode != 0 { // code of a file, which nobody has changed in memory
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED)
		}
	}
}
