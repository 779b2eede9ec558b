package search

import (
	"bytes"
	"io"
	"strings"
)

// maxIgnoreBytes is how much of one ignore file is read. Real ones have a few
// kilobytes; the rest of a larger one is left unread to keep memory bounded.
const maxIgnoreBytes = 4 << 20

// rules are the ignore rules in force in a directory: those of one ignore file,
// and behind them those of the directories above it.
type rules struct {
	above *rules
	base  int    // length of the path of the file's directory, with its slash
	list  []rule // in the order of the file
}

// A rule is one line of an ignore file.
type rule struct {
	pattern string
	negated bool // begins with `!`: not ignored after all
	dirOnly bool // ends with `/`
	inName  bool // no slash: matched against the name, at any depth
	literal int  // length of what comes before the first special character
	suffix  bool // `*` and a literal
}

// ignores reports whether the rules leave out an entry: prefix is the path of
// its directory, with a slash at the end unless that is the workspace.
func (r *rules) ignores(prefix, name string, isDir bool) bool {
	path := ""
	for ; r != nil; r = r.above {
		for i := len(r.list) - 1; i >= 0; i-- {
			rule := &r.list[i]
			if rule.dirOnly && !isDir {
				continue
			}
			hit := false
			if rule.inName {
				hit = rule.matchName(name)
			} else {
				if path == "" {
					path = prefix + name
				}
				hit = rule.matchPath(path[r.base:])
			}
			if hit {
				return !rule.negated
			}
		}
	}
	return false
}

func (r *rule) matchName(name string) bool {
	switch {
	case r.literal == len(r.pattern):
		return name == r.pattern
	case r.suffix:
		return strings.HasSuffix(name, r.pattern[1:])
	}
	return matchWild(r.pattern, name, false)
}

// matchPath matches what comes behind the literal part on its own, as git does,
// so that in `a**/b` the stars stand at the start of a pattern.
func (r *rule) matchPath(path string) bool {
	rest, ok := strings.CutPrefix(path, r.pattern[:r.literal])
	return ok && matchWild(r.pattern[r.literal:], rest, true)
}

// parseRules returns the rules of an ignore file in the directory whose path
// has base bytes, in front of those above it.
func parseRules(data []byte, base int, above *rules) *rules {
	r := &rules{above: above, base: base}
	data = bytes.TrimPrefix(data, []byte(bom))
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		line, _, _ = bytes.Cut(line, []byte{0})
		if parsed, ok := parseRule(trimBlanks(string(line))); ok {
			r.list = append(r.list, parsed)
		}
	}
	if len(r.list) == 0 {
		return above
	}
	return r
}

// parseRule parses one line; ok is false for one that can match nothing.
func parseRule(s string) (r rule, ok bool) {
	s, r.negated = strings.CutPrefix(s, "!")
	s, r.dirOnly = strings.CutSuffix(s, "/")
	r.inName = !strings.Contains(s, "/")
	s = strings.TrimPrefix(s, "/")
	r.pattern = s
	if r.literal = strings.IndexAny(s, `*?[\`); r.literal < 0 {
		r.literal = len(s)
	}
	r.suffix = strings.HasPrefix(s, "*") && !strings.ContainsAny(s[1:], `*?[\`)
	return r, s != ""
}

// trimBlanks drops the blanks at the end of a line that no backslash protects.
func trimBlanks(s string) string {
	end := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ' ':
			continue
		case '\\':
			if i++; i == len(s) {
				return s
			}
		}
		end = i + 1
	}
	return s[:end]
}

// readRules adds the rules of the ignore file name in dir. One that is missing,
// a link or unreadable adds nothing.
func readRules(dir Dir, name string, base int, above *rules) *rules {
	f, err := dir.OpenFile(name)
	if err != nil {
		return above
	}
	defer f.Close()
	data, _ := io.ReadAll(io.LimitReader(f, maxIgnoreBytes)) // what could be read counts
	return parseRules(data, base, above)
}

// rulesAbove returns the rules that hold for entries of path (cleaned, "." for
// the workspace) but those of an ignore file in path itself, which is read when
// the directory is listed.
func rulesAbove(tree Tree, path string) *rules {
	root, _, err := tree.Open(".")
	if err != nil || root == nil {
		return nil
	}
	defer root.Close()
	r := readExclude(root)
	if path == "." {
		return r
	}
	r = readRules(root, ".gitignore", 0, r)
	for i := 0; i < len(path); i++ {
		if path[i] != '/' {
			continue
		}
		dir, file, err := tree.Open(path[:i])
		if err != nil {
			break
		}
		if file != nil {
			file.Close()
			break
		}
		r = readRules(dir, ".gitignore", i+1, r)
		dir.Close()
	}
	return r
}

// readExclude returns the rules of .git/info/exclude.
func readExclude(root Dir) *rules {
	git, err := root.OpenDir(".git")
	if err != nil {
		return nil
	}
	defer git.Close()
	info, err := git.OpenDir("info")
	if err != nil {
		return nil
	}
	defer info.Close()
	return readRules(info, "exclude", 0, nil)
}
