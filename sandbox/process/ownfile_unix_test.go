//go:build unix

package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOpenOwn: a file of the server's is opened wherever no command has a say in it,
// and nowhere else, however its path is spelled.
func TestOpenOwn(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"ws/sub", "more", "own/deep"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"ws/away": top + "/own", "own/in": "../ws", "own/file": "../ws/file", "own/dangling": "../ws/none", "alias": "ws", "own/fine": "deep",
		"own/finefile": "deep/x",
	} {
		if err := os.Symlink(target, filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(top, "ws/file"), []byte("theirs"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(top, "own/pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []Mode{Auto, Off} {
		c, err := NewCommands(Config{Dir: top + "/ws", AllowWrite: []string{top + "/more"}, Sandbox: mode})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for name, want := range map[string]string{
			"own/log": "", "own/deep/x": "", "own/fine/y": "", "own/finefile": "",
			"ws/log": "commands can write there", "ws/sub/log": "commands can write there", "more/log": "commands can write there",
			"ws/away/log": "commands can write there", "own/in/log": "commands can write there", "own/file": "commands can write there",
			"own/dangling": "commands can write there", "alias/log": "commands can write there", "ws/away/deep/x": "commands can write there",
			"none/log": "no such file", "own": "is a directory", "own/pipe": "no such device",
		} {
			file, err := c.OpenOwn(filepath.Join(top, name))
			if err == nil {
				file.Close()
			}
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s, %s: %v; want %q", mode, name, err, want)
			}
		}
	}
	if b, err := os.ReadFile(filepath.Join(top, "ws/file")); string(b) != "theirs" {
		t.Errorf("%q %v", b, err)
	}
	if info, err := os.Stat(filepath.Join(top, "own/log")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(top, "ws/log")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was made where it was refused: %v", err)
	}
	whole, err := NewCommands(Config{Dir: "/", Sandbox: Off})
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	if _, err := whole.OpenOwn(filepath.Join(top, "own/log")); err == nil {
		t.Error("where the workspace is everything, no file is the server's alone")
	}
}
