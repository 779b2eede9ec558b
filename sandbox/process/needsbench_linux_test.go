package process

import (
	"os"
	"testing"
)

// BenchmarkNeeds is the question to the kernel whether a command waits for input, of
// commands that do and of one that does not. The floor is one line of the kernel's table
// of processes.
func BenchmarkNeeds(b *testing.B) {
	b.Run("floor", func(b *testing.B) {
		for b.Loop() {
			if _, err := os.ReadFile("/proc/self/stat"); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, mode := range []Mode{Isolate, Landlock, Off} {
		s, _ := newShell(b, Config{Sandbox: mode})
		for _, c := range []struct {
			name, line string
			size       *Size
			waits      bool
		}{
			{"sleeps", "exec sleep 600", nil, false},
			{"reads", "exec cat", nil, true},
			{"types", "exec cat", screenSize, true},
			{"shell", "cat; true", nil, true},
		} {
			r := begin(b, s, c.line, c.size)
			if c.waits {
				waits(b, r)
			}
			b.Run(string(mode)+"/"+c.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if r.process.needs().Input != c.waits {
						b.Fatalf("waits: %v", !c.waits)
					}
				}
			})
		}
	}
}
