package server

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
)

// TestMain keeps the skills and the cache of whoever runs the tests out of them.
func TestMain(m *testing.M) {
	flag.Parse()
	testlevel.SideBySide() // what is parallel waits for commands
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "perstack-base-server-")
	if err != nil {
		panic(err)
	}
	os.Setenv("HOME", filepath.Join(dir, "home"))
	os.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	defer os.RemoveAll(dir)
	return m.Run()
}
