package policy

import (
	"slices"
	"testing"
)

func TestNamedByGit(t *testing.T) {
	const config = `[core]
	bare = false
	hooksPath = .husky/_
[Core] HooksPath="/ws/my hooks"
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
	hooksPath = .
	hooksPath = commented # by whom
	hooksPath = or so;this
	hooksPath = go \
on
[core "sub] # section"] hooksPath = "part" of "it"
	hooksPath = "a;b"
	hooksPath
	# hooksPath = not
[remote "]"] path = "not # this either
`
	files := map[string]string{".git/config": config, "git/settings": "[include] path = next", "git/next": "[core]\nhooksPath = deep",
		".git/config.worktree": "[core]hooksPath = tree"}
	want := []string{".husky", "my hooks", "git/settings", "more", ".git/inside", "commented", "or so", "go on", "part of it", "a;b", "tree", "git/next", "deep"}
	if got := NamedByGit(func(name string) string { return files[name] }, "/ws"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	endless := func(string) string { return "[include]\npath = more" }
	if got := NamedByGit(endless, "/ws"); len(got) > maxIncludes {
		t.Errorf("%d files of settings were read", len(got))
	}
}
