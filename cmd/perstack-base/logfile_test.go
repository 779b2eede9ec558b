package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLogStaysWhereItLies: a link that commands left at the log's place, or on the way to
// it, leads to no file of the user's.
func TestLogStaysWhereItLies(t *testing.T) {
	home, ws := t.TempDir(), t.TempDir()
	victim := filepath.Join(home, "profile")
	for link, to := range map[string]string{"log": victim, "dir": home, "loop": "loop", "inside": "kept"} {
		if err := os.Symlink(to, filepath.Join(ws, link)); err != nil {
			t.Skip(err)
		}
	}
	for path, want := range map[string]bool{"log": false, "dir/profile": false, "loop": false, "inside": true, "new": true} {
		full := filepath.Join(ws, path)
		plain, err := os.OpenFile(full, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			plain.Close()
		}
		if _, err := os.Stat(victim); path == "log" && err != nil {
			t.Fatal("an unguarded call does not follow the link: nothing is proven")
		}
		_ = os.Remove(victim)
		file, err := openLog(full, []string{ws})
		if (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
		if err == nil {
			file.Close()
		}
		if _, err := os.Stat(victim); err == nil {
			t.Errorf("%s: the user's file was opened", path)
		}
	}
	outside := filepath.Join(home, "log")
	file, err := openLog(outside, []string{ws})
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
}
