// Package files reads and changes files below one directory, the workspace.
//
// Start with [Open], which makes an [FS]. Its names are the caller's: relative, or
// absolute below the workspace; [FS.Resolve] in path.go and links.go says how they are
// understood. No name leads out, also when links change while it is looked up: the
// kernel resolves it below a directory that is held open (stale.go has that, and notices
// when it was replaced).
//
// A write is whole or not at all: write.go changes one file, tx.go several at once,
// commit.go carries both out by temporary files that are renamed. dir.go walks
// directories without following links. guard.go says what of a git repository is
// closed where commands are isolated.
package files
