package search

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func list(t testing.TB, tree Tree, q ListQuery) (string, error) {
	t.Helper()
	if q.Path == "" {
		q.Path = "."
	}
	dir, _, err := tree.Open(q.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	return List(context.Background(), dir, q)
}

func TestList(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "src/core/loop.py", "", "src/core/deep/x", "", "src/main.py", "", "src/.hidden", "", "b.txt", "",
		".git/config", "", "src/.git/config", "", "src/Z", "", "a\nb", "")
	if err := os.Symlink("src", filepath.Join(dir, "latest")); err != nil {
		t.Skip("no links here")
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o777); err != nil {
		t.Fatal(err)
	}
	tree := openRoot(t, dir)
	tests := []struct {
		name string
		q    ListQuery
		want string
	}{
		{"defaults", ListQuery{}, `./
  .git/
  a\x0ab
  b.txt
  empty/
  latest@
  src/
    .git/
    .hidden
    Z
    core/
    main.py`},
		{"direct children", ListQuery{Path: "src", Depth: 1}, "src/\n  .git/\n  .hidden\n  Z\n  core/\n  main.py"},
		{"a page repeats what is above it", ListQuery{Depth: 4, Offset: 12, Limit: 3},
			"./\n  src/\n    core/\n      deep/\n        x\n      loop.py\n    main.py"},
		{"more", ListQuery{Depth: 4, Offset: 11, Limit: 1},
			"./\n  src/\n    core/\n      deep/\n\n[... 3 more entries, next offset 12 ...]"},
		{"more behind a page", ListQuery{Limit: 2}, "./\n  .git/\n  a\\x0ab\n\n[... 9 more entries, next offset 3 ...]"},
		{"within .git", ListQuery{Path: "src/.git", Depth: 1}, "src/.git/\n  config"},
		{"empty", ListQuery{Path: "empty"}, "empty/\n  (empty directory)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := list(t, tree, test.q)
			if err != nil || got != test.want {
				t.Errorf("got %v\n%s\nwant\n%s", err, got, test.want)
			}
		})
	}
}

func TestListPastEnd(t *testing.T) {
	tree := tree(t, "d/a", "", "d/b", "")
	_, err := list(t, tree, ListQuery{Path: "d", Given: "./d", Offset: 3})
	var past *PastEndError
	if !errors.As(err, &past) || err.Error() != "offset 3 is past the end of ./d (2 entries)." {
		t.Errorf("got %v", err)
	}
}

// pages put together are the whole, whatever the size of a page.
func TestListPagesAddUp(t *testing.T) {
	tree := tree(t, "a/b/c", "", "a/d", "", "e/f/g/h", "", "e/i", "", "j", "", "k/l", "")
	whole, err := list(t, tree, ListQuery{Depth: 9, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(whole, "\n")[1:]
	for limit := 1; limit < 5; limit++ {
		var got []string
		for offset := 1; offset <= len(want); offset += limit {
			page, err := list(t, tree, ListQuery{Depth: 9, Limit: limit, Offset: offset})
			if err != nil {
				t.Fatal(err)
			}
			page, _, _ = strings.Cut(page, "\n\n")
			lines := strings.Split(page, "\n")
			got = append(got, lines[len(lines)-min(limit, len(want)-offset+1):]...)
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("pages of %d:\n%s\nwant\n%s", limit, strings.Join(got, "\n"), whole)
		}
	}
}

// manyEntries is a directory that lists n files without a disk behind it.
type manyEntries struct {
	Dir
	n int
}

func (d manyEntries) ReadDir() ([]Entry, error) {
	entries := make([]Entry, d.n)
	for i := range entries {
		entries[i].Name = fmt.Sprintf("%07d", d.n-i)
	}
	return entries, nil
}

func TestListStopsCounting(t *testing.T) {
	for _, test := range []struct {
		n, offset int
		want      string
	}{
		{100_000, 1, "[... 99950 more entries, next offset 51 ...]"},
		{100_001, 1, "[... more than 99950 entries, next offset 51 ...]"},
		{100_001, 100_000, "  0100001"},
		{150_000, 100_001, "[... more than 0 entries, next offset 100051 ...]"},
	} {
		got, err := List(context.Background(), manyEntries{n: test.n}, ListQuery{Offset: test.offset})
		if err != nil || !strings.HasSuffix(got, "\n"+test.want) {
			t.Errorf("%d entries from %d: %v, %q", test.n, test.offset, err, got[max(0, len(got)-80):])
		}
	}
}

func TestListCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := List(ctx, manyEntries{n: 1}, ListQuery{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
