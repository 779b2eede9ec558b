package baseagent_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/tools"
)

// TestPatchShowsItsFiles: what a patch does to each file is told once, whichever way it
// does it.
func TestPatchShowsItsFiles(t *testing.T) {
	w := newWorld(t)
	put := func(name, content string) {
		if err := os.WriteFile(filepath.Join(w.dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ name, patch, want string }{
		{"a link becomes a file", "*** Delete File: link\n*** Add File: link\n+x", "diff --git a/link b/link\n\\ Not compared: it was a symbolic link.\n"},
		{"a link is removed", "*** Delete File: link", "diff --git a/link b/link\ndeleted file mode 100644\n\\ Not compared: it was a symbolic link.\n"},
		{"moved over another", "*** Update File: a\n*** Move to: b\n@@\n-a\n+A", "diff --git a/b b/b\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-b\n+A\ndiff --git a/a b/a\ndeleted file mode 100644\n--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"},
		{"moved as it is", "*** Update File: a\n*** Move to: sub/c\n@@\n a", "diff --git a/a b/sub/c\nrename from a\nrename to sub/c\n"},
		{"written twice", "*** Update File: a\n@@\n-a\n+A\n*** Update File: a\n@@\n-A\n+AA", "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+AA\n"},
		{"replaced", "*** Delete File: a\n*** Add File: a\n+other", "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+other\n"},
	} {
		put("a", "a\n")
		put("b", "b\n")
		_ = os.RemoveAll(filepath.Join(w.dir, "sub"))
		_ = os.Remove(filepath.Join(w.dir, "link"))
		if err := os.Symlink("b", filepath.Join(w.dir, "link")); err != nil {
			t.Skip(err)
		}
		r, err := w.server.Call(tools.WithViews(context.Background()), "apply_patch", map[string]any{"patch": "*** Begin Patch\n" + c.patch + "\n*** End Patch"})
		if err != nil || r.IsError {
			t.Fatalf("%s: %v %v", c.name, err, r.Content)
		}
		if got, _ := r.Meta.AdditionalFields["perstack-base/diff"].(string); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, strings.TrimSpace(c.want))
		}
	}
}

// TestPatchReadsWithinBounds: a patch of many large files is shown, but not all of them
// are read for it.
func TestPatchReadsWithinBounds(t *testing.T) {
	w := newWorld(t)
	patch := "*** Begin Patch\n"
	for _, name := range []string{"a", "b", "c"} {
		if err := os.WriteFile(filepath.Join(w.dir, name), make([]byte, tools.MaxCompared), 0o644); err != nil {
			t.Fatal(err)
		}
		patch += "*** Delete File: " + name + "\n"
	}
	r, err := w.server.Call(tools.WithViews(context.Background()), "apply_patch", map[string]any{"patch": patch + "*** End Patch"})
	if err != nil || r.IsError {
		t.Fatal(err, r.Content)
	}
	got, _ := r.Meta.AdditionalFields["perstack-base/diff"].(string)
	if strings.Count(got, "Binary files") != 2 || !strings.Contains(got, "diff --git a/c b/c\ndeleted file mode 100644\n\\ Not compared: it is one of too many.\n") {
		t.Error(got)
	}
}
