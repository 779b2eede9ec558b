package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestLogLiesWhereNoCommandWrites: a log that commands could forge is refused, and so is one
// whose name leads through what they can write: a link that they left there leads to any
// file of the user's.
func TestLogLiesWhereNoCommandWrites(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"ws", "own/deep"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"ws/log": "../own/profile", "ws/dir": "../own", "own/in": "../ws", "own/into": "../ws/new", "own/back": "../ws/dir/deep",
		"own/fine": "deep", "own/finefile": top + "/own/deep/x", "alias": "ws", "own/loop": "loop",
	} {
		if err := os.Symlink(filepath.FromSlash(to), filepath.Join(top, link)); err != nil {
			t.Skip(err)
		}
	}
	ws := []string{filepath.Join(top, "alias")}
	for name, want := range map[string]bool{
		"own/log": true, "own/fine/x": true, "own/finefile": true, "wsx": true,
		"ws/log": false, "ws/new": false, "ws/dir/x": false, "alias/new": false, "own/in/x": false, "own/in/sub/x": false,
		"own/into": false, "own/back/x": false, "own/loop": false,
	} {
		path := filepath.Join(top, name)
		if name != "own/loop" && !want && name != "own/in/sub/x" {
			plain, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				t.Fatalf("%s: an unguarded call fails, too: nothing is proven: %v", name, err)
			}
			plain.Close()
		}
		file, err := openLog(path, ws)
		if err == nil {
			file.Close()
		}
		if (err == nil) != want || !want && name != "own/loop" && !errors.Is(err, errForged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
