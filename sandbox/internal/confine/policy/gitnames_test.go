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
`
	want := []string{".husky", "my hooks", "git/settings", "more"}
	if got := NamedByGit(config, "/ws"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
