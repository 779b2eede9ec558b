package search

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// Kind says what a directory entry is, without following links.
type Kind uint8

// The kinds of entries. Special is a FIFO, a socket or a device.
const (
	Regular Kind = iota
	Directory
	Link
	Special
)

// An Entry is one name in a directory.
type Entry struct {
	Name string
	Kind Kind
}

// A Tree is a workspace. What it hides is neither listed nor opened.
type Tree interface {
	// Open opens what path names: slash separated, cleaned, relative to the
	// workspace, "." for the workspace itself. Links on the way are followed
	// as far as they stay inside. Exactly one of the results is not nil.
	Open(path string) (Dir, File, error)
}

// A Dir is an open directory. Its methods are called from several goroutines,
// ReadDir at most once.
type Dir interface {
	// ReadDir returns all entries but "." and "..", in any order. With an
	// error it may return those it could read.
	ReadDir() ([]Entry, error)
	// OpenDir opens a child directory. A link is an error.
	OpenDir(name string) (Dir, error)
	// OpenFile opens a child file for reading without ever blocking. A link
	// is an error, and so is anything that is not a regular file, at the
	// latest when it is read.
	OpenFile(name string) (File, error)
	Close() error
}

// A File is an open regular file.
type File interface {
	io.ReadCloser
	// ModTime is when the content last changed.
	ModTime() time.Time
}

// EscapeName returns a file name or path that is safe within a line of text:
// every byte below 0x20, every 0x7F and every byte that is not part of valid
// UTF-8 is shown as \xNN.
func EscapeName(name string) string {
	if isPlain(name) {
		return name
	}
	var b strings.Builder
	for len(name) > 0 {
		r, n := utf8.DecodeRuneInString(name)
		if isControl(name[0]) || r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, `\x%02x`, name[0])
		} else {
			b.WriteString(name[:n])
		}
		name = name[n:]
	}
	return b.String()
}

func isPlain(name string) bool {
	for i := 0; i < len(name); i++ {
		if isControl(name[i]) {
			return false
		}
	}
	return utf8.ValidString(name)
}

func isControl(c byte) bool { return c < 0x20 || c == 0x7f }
