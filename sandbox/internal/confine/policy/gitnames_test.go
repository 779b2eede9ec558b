package policy

import (
	"slices"
	"strings"
	"testing"
)

func TestNamedByGit(t *testing.T) {
	const config = "\ufeff[core]\r\n\tbare = false\r\n\thooksPath = .husky/_\r\n" + `[Core] HooksPath="/ws/my hooks"
[include]
	path = ../git/settings
[includeIf "gitdir:/ws/"]
	path = /ws/more
	path = ~/.gitconfig-work
	path = inside
[remote "path"]
	path = no
[core]
	hooksPath = /elsewhere
	hooksPath = commented # by whom
	hooksPath = or so;this
	hooksPath = go \
on
	hooksPath = \
	  next
	hooksPath = a	tab
	hooksPath = "blank "   
	hooksPath = "cut` + "\x00" + `off"
	hooksPath = :(optional)optional
	hooksPath = "" after
[core "sub] # section"] hooksPath = "part" of "it"
	hooksPath = "a;b"
	hooksPath
	# hooksPath = not
[remote "]"] path = "not # this either
`
	files := map[string]string{"/ws/.git/config": config, "/ws/.git/../git/settings": "[include] path = next", "/ws/.git/../git/next": "[core]\nhooksPath = deep",
		"/ws/.git/config.worktree": "[core]hooksPath = tree"}
	want := []string{".husky", "my hooks", ".git/../git/settings", "more", ".git/.gitconfig-work", ".gitconfig-work", ".git/inside", "/elsewhere", "commented", "or so",
		"go on", "next", "a tab", "a\ttab", "blank ", "cut", "optional", "after", "part of it", "a;b", "tree", ".git/../git/next", "deep"}
	var got []string
	names, whole := GitTree{Dirs: []string{"/ws/.git"}, Tree: "/ws"}.Named(GitUser{}, func(path string) string { return files[path] })
	if !whole {
		t.Error("not whole")
	}
	for _, name := range names {
		if path := strings.TrimPrefix(name.Path, "/ws/"); slices.Contains(want, path) {
			got = append(got, path)
		} else if rest, ok := strings.CutPrefix(path, ".git/"); !ok && path != "//.gitconfig-work" || ok && !slices.Contains(want, rest) {
			t.Errorf("%q is named", path)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	endless := func(string) string { return "[include]\npath = more" }
	if got, whole := (GitTree{Dirs: []string{"/ws/.git"}}).Named(GitUser{}, endless); len(got) > maxIncludes || whole {
		t.Errorf("%d files of settings were read", len(got))
	}
}
