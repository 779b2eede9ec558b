package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestSettle: a server that waits has less of its own code in memory than it had, and goes on.
func TestSettle(t *testing.T) {
	before := codeInMemory(t)
	settle()
	if after := codeInMemory(t); after >= before {
		t.Errorf("%d KiB of code in memory, %d before", after, before)
	}
}

// codeInMemory is how much of the program's code is mapped, in KiB.
func codeInMemory(t *testing.T) (sum int) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	code := false
	for line := range strings.Lines(string(maps)) {
		var kib int
		if f := strings.Fields(line); len(f) >= 5 && strings.Contains(f[0], "-") {
			code = f[1] == "r-xp" && f[4] != "0"
		} else if n, _ := fmt.Sscanf(line, "Rss: %d kB", &kib); n == 1 && code {
			sum += kib
		}
	}
	return sum
}
