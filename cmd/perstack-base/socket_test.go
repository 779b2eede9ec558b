package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/spf13/pflag"

	"github.com/perstack-ai/perstack-base/server"
)

// TestSocketIsBoundByItsName: whether commands can reach a socket is judged by the
// name of its listener, whatever it was called by.
func TestSocketIsBoundByItsName(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("other paths")
	}
	dir, err := os.MkdirTemp("", "s") // names of sockets are short
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Symlink(".", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, name := range []string{"s", "./s", "link/s", dir + "/link/s"} {
		var o web
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		o.register(flags)
		if err := flags.Parse([]string{"--listen", "unix:" + name}); err != nil {
			t.Fatal(err)
		}
		ln, err := o.open(&server.HTTP{})
		if err != nil {
			t.Fatal(err)
		}
		if at := ln.Addr().String(); at != filepath.Join(dir, "s") {
			t.Errorf("--listen unix:%s is bound as %s", name, at)
		}
		ln.Close()
	}
}
