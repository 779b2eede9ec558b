package skillrepo

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Glob matches slash-separated relative paths: * ? […] and {a,b} within one
// segment, ** as a whole segment for any number of them. Dot files match.
type Glob struct{ re *regexp.Regexp }

// maxGlob bounds a pattern's length in bytes, and so the work of a match, which
// is linear in the path: it runs as a regular expression without backtracking.
const maxGlob = 1024

// CompileGlob reads a pattern; the error says what is malformed.
func CompileGlob(pattern string) (*Glob, error) {
	if pattern == "" {
		return nil, errors.New("the pattern is empty")
	}
	if len(pattern) > maxGlob {
		return nil, fmt.Errorf("the pattern is longer than %d bytes", maxGlob)
	}
	if !utf8.ValidString(pattern) {
		return nil, errors.New("the pattern is not valid UTF-8")
	}
	src, err := globSource(pattern)
	if err != nil {
		return nil, err
	}
	re, err := regexp.Compile(src)
	if err != nil {
		return nil, errors.New("the pattern is malformed")
	}
	return &Glob{re}, nil
}

// Match reports whether the whole path matches.
func (g *Glob) Match(path string) bool { return g.re.MatchString(path) }

// globSource writes the pattern as a regular expression.
func globSource(pattern string) (string, error) {
	// Two ** in a row say what one says.
	segments := slices.CompactFunc(strings.Split(pattern, "/"), func(a, b string) bool { return a == "**" && b == "**" })
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	glue := "" // what separates the next plain segment from what is written so far
	for i, seg := range segments {
		last := i == len(segments)-1
		switch {
		case seg != "**":
			b.WriteString(glue)
			if err := writeSegment(&b, seg); err != nil {
				return "", err
			}
			glue = "/"
		case last && i == 0:
			b.WriteString(`[^/]+(?:/[^/]+)*`)
		case last:
			b.WriteString(`(?:/[^/]+)*`)
		default:
			b.WriteString(glue + `(?:[^/]+/)*`)
			glue = ""
		}
	}
	b.WriteString(`\z`)
	return b.String(), nil
}

// writeSegment writes one segment; braces may nest.
func writeSegment(b *strings.Builder, seg string) error {
	depth := 0
	for i := 0; i < len(seg); {
		r, size := utf8.DecodeRuneInString(seg[i:])
		switch {
		case r == '*':
			b.WriteString(`[^/]*`)
		case r == '?':
			b.WriteString(`[^/]`)
		case r == '[':
			n, err := writeClass(b, seg[i:])
			if err != nil {
				return err
			}
			size = n
		case r == '{':
			depth++
			b.WriteString(`(?:`)
		case r == '}' && depth > 0:
			depth--
			b.WriteString(`)`)
		case r == ',' && depth > 0:
			b.WriteString(`|`)
		default:
			b.WriteString(regexp.QuoteMeta(seg[i : i+size]))
		}
		i += size
	}
	if depth > 0 {
		return errors.New("a { is not closed within its segment")
	}
	return nil
}

// writeClass writes the class at the start of seg and returns its length. A ]
// that comes first stands for itself, as does a - at either end.
func writeClass(b *strings.Builder, seg string) (int, error) {
	runes := []rune(seg[1:])
	b.WriteByte('[')
	i := 0
	if i < len(runes) && (runes[i] == '!' || runes[i] == '^') {
		b.WriteString(`^/`)
		i++
	}
	for first := true; i < len(runes) && (first || runes[i] != ']'); first = false {
		lo, hi := runes[i], runes[i]
		if i+2 < len(runes) && runes[i+1] == '-' && runes[i+2] != ']' {
			hi = runes[i+2]
			i += 2
		}
		i++
		if hi < lo {
			return 0, errors.New("a range in [ ] runs backwards")
		}
		writeRange(b, lo, min(hi, '/'-1)) // a class never matches the separator
		writeRange(b, max(lo, '/'+1), hi)
	}
	if i >= len(runes) {
		return 0, errors.New("a [ is not closed within its segment")
	}
	b.WriteByte(']')
	return 1 + len(string(runes[:i+1])), nil
}

func writeRange(b *strings.Builder, lo, hi rune) {
	if lo <= hi {
		fmt.Fprintf(b, `\x{%x}-\x{%x}`, lo, hi)
	}
}

// MatchesPath reports whether the skill's paths hold for a file of the given
// workspace directory. file may be relative to the workspace or absolute; a
// pattern is tried on the whole relative path and on its last element. A skill
// without paths matches every file inside the workspace.
func (s *Skill) MatchesPath(file, workspace string) bool {
	rel, ok := relativeTo(file, workspace)
	if !ok || len(s.Paths) == 0 {
		return ok
	}
	for _, g := range s.globs {
		if g.Match(rel) || g.Match(path.Base(rel)) {
			return true
		}
	}
	return false
}

// relativeTo is the lexical path of file below workspace; ok is false outside it
// and for the workspace itself.
func relativeTo(file, workspace string) (rel string, ok bool) {
	file, workspace = slashed(file), path.Clean(slashed(workspace))
	if path.IsAbs(file) || hasDrive(file) {
		file = path.Clean(file)
		if file, ok = strings.CutPrefix(file, strings.TrimSuffix(workspace, "/")+"/"); !ok {
			return "", false
		}
	}
	rel = path.Clean(file)
	return rel, rel != "." && rel != ".." && !strings.HasPrefix(rel, "../")
}

func slashed(p string) string { return strings.ReplaceAll(p, `\`, "/") }

func hasDrive(p string) bool {
	return len(p) > 2 && p[1] == ':' && p[2] == '/' && (p[0]|0x20 >= 'a' && p[0]|0x20 <= 'z')
}
