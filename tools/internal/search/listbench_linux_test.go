package search

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkListAgainstWalk lists 20,000 files beside a raw walk of them.
func BenchmarkListAgainstWalk(b *testing.B) {
	dir := b.TempDir()
	for i := range 20000 {
		sub := filepath.Join(dir, fmt.Sprintf("a%d/b%d", i%20, i%200))
		if err := os.MkdirAll(sub, 0o777); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(sub, fmt.Sprint(i)), nil, 0o666); err != nil {
			b.Fatal(err)
		}
	}
	tree := openRaw(b, dir)
	list := func() {
		if _, err := list(b, tree, ListQuery{Depth: 100}); err != nil {
			b.Fatal(err)
		}
	}
	walk := func() {
		filepath.WalkDir(dir, func(string, fs.DirEntry, error) error { return nil })
	}
	ours, raw, _ := interleaved(b, 31, list, walk, func() { time.Sleep(0) })
	fmt.Printf("\n20,000 files: list %.1f ms, raw walk %.1f ms\n", ms(ours), ms(raw))
	if ours > raw*3/2 {
		b.Errorf("%v, a raw walk takes %v", ours, raw)
	}
}
