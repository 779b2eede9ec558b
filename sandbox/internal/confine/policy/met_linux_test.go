package policy

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// TestWaysMetBefore: a walk that goes on from what others have met leads where one from the
// root does, over links of every kind, and is refused at the same barriers; nothing stays open.
func TestWaysMetBefore(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"a/b/c", "d/e", "written/f"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(top, "a/b/file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{
		"up": "a/b/../../d", "far": filepath.Join(top, "a/b"), "above": "..", "a/out": "../d/e", "a/b/over": "../../../..", "d/e/loop": "loop",
		"a/in": "../written/f", "a/b/through": "../../written/../d", "dangling": "nothing",
	} {
		if err := os.Symlink(target, filepath.Join(top, link)); err != nil {
			t.Fatal(err)
		}
	}
	written, err := walk(filepath.Join(top, "written"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer written.Fd.close()
	open := func() int { entries, _ := os.ReadDir("/proc/self/fd"); return len(entries) }
	before := open()
	seen, refused := new(met), 0
	for range 2 { // nothing is met before, and everything
		for _, name := range []string{"", "a", "a/b/c", "a/b/file", "a/b/file/x", "a/none", "up/e", "far/c", "far/../b", "above", "a/out", "a/b/over", "d/e/loop",
			"a/in", "a/b/through/e", "written", "written/f", "written/..", "dangling", "d//e/."} {
			path := top + "/" + name
			anew, err := walk(path, []FileID{written.ID}, nil)
			again, err2 := walk(path, []FileID{written.ID}, seen)
			anew.Fd.close()
			if !errors.Is(err2, err) || again.Real != anew.Real || again.ID != anew.ID || !maps.Equal(again.Links, anew.Links) {
				t.Errorf("%s: %v %v, then %v %v", name, anew, err, again, err2)
			}
			if err2 == nil && IdOf(ptr(again.stat())) != again.ID {
				t.Errorf("%s: another object is open", name)
			}
			if again.Fd.close(); errors.Is(err2, errWritable) {
				refused++
			}
		}
	}
	if refused != 2*5 || seen.open < 5 {
		t.Errorf("%d refused, %d directories met", refused, seen.open)
	}
	if seen.close(); open() != before {
		t.Errorf("%d descriptors, %d before", open(), before)
	}
}

func ptr[T any](v T) *T { return &v }
