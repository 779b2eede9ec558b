package search

import (
	"slices"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
)

// typeTable lists the kinds of files: a name, then its extensions. A word with
// a capital or a star is a name of a file, which a star may abbreviate. Where
// only the name stands it is the extension.
const typeTable = `
c: c h
cpp: cc cpp cxx c++ hh hpp hxx h inl
cs
css: css scss
dart
docker: Dockerfile Dockerfile.* *.dockerfile
elixir: ex exs eex
go
haskell: hs lhs
html: html htm
java
js: js jsx mjs cjs
json
kotlin: kt kts
lua
make: mk Makefile GNUmakefile
md: md markdown mdx
perl: pl pm
php
proto
py: py pyi
ruby: rb gemspec Gemfile Rakefile
rust: rs
scala
sh: sh bash zsh ksh
sql
swift
tf
toml
ts: ts tsx mts cts
txt
vue
xml
yaml: yaml yml
zig
`

// TypeNames returns the names of the kinds of files, in order.
func TypeNames() []string {
	var names []string
	for line := range strings.Lines(strings.TrimSpace(typeTable)) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		names = append(names, name)
	}
	return names
}

// A TypeError says that no kind of file has this name.
type TypeError struct{ Name string }

func (e *TypeError) Error() string  { return "type " + `"` + e.Name + `"` + " is not known." }
func (*TypeError) Code() fault.Code { return fault.BadInput }

// Hint lists the names.
func (e *TypeError) Hint() string { return "Known types: " + strings.Join(TypeNames(), ", ") + "." }

// A fileType is one row of the table. The nil type takes all files.
type fileType struct {
	extensions []string // with the dot
	names      []string // with stars
}

// parseType finds a row of the table.
func parseType(name string) (*fileType, error) {
	if !slices.Contains(TypeNames(), name) {
		return nil, &TypeError{name}
	}
	words := name
	for line := range strings.Lines(typeTable) {
		if rest, ok := strings.CutPrefix(line, name+": "); ok {
			words = rest
		}
	}
	t := &fileType{}
	for _, word := range strings.Fields(words) {
		if word != strings.ToLower(word) || strings.Contains(word, "*") {
			t.names = append(t.names, word)
		} else {
			t.extensions = append(t.extensions, "."+word)
		}
	}
	return t, nil
}

func (t *fileType) takes(name string) bool {
	if t == nil {
		return true
	}
	for _, ext := range t.extensions {
		if strings.HasSuffix(name, ext) {
			return true
		}
	}
	for _, n := range t.names {
		if matchWild(n, name, false) {
			return true
		}
	}
	return false
}
