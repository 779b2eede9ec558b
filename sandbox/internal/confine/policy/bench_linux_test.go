package policy

import (
	"os"
	"testing"
)

// BenchmarkPin is what the first command of a server waits for.
func BenchmarkPin(b *testing.B) {
	in := Inputs{Workspace: b.TempDir(), Home: os.Getenv("HOME"), Path: os.Getenv("PATH"), Users: true}
	b.ReportAllocs()
	for b.Loop() {
		DefaultPolicy(in).Pin().Close()
	}
}
