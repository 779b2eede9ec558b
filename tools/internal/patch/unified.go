package patch

import (
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// A unified is a parser of unified diffs: what git and diff -u write. Everything
// between the changes of two files that it does not know is passed over, as the
// tools do.
type unified struct {
	lines []string
	at    int
	patch Patch
}

// isUnified reports whether a patch is a unified diff, by its first line that is not blank.
func isUnified(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	for _, start := range []string{"diff --git ", "--- ", "Index: "} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	return false
}

// parseUnified reads a unified diff. Line numbers are hints and counts only tell
// where a hunk may end: models get both wrong.
func parseUnified(text string) (*Patch, error) {
	text = strings.TrimRight(strings.TrimLeft(text, " \t\r\n"), "\n")
	p := unified{lines: strings.Split(text, "\n")}
	for i, line := range p.lines {
		p.lines[i] = strings.TrimSuffix(line, "\r")
	}
	for p.at < len(p.lines) {
		var err error
		switch {
		case strings.HasPrefix(p.lines[p.at], "diff --git "):
			err = p.gitFile()
		case p.header(p.at):
			err = p.file(change{line: p.at + 1})
		case hunkHeader().MatchString(p.lines[p.at]):
			err = invalidHunk(p.at+1, "the hunk has no file.", "Lines '--- a/{path}' and '+++ b/{path}' stand before the hunks of a file.")
		default:
			p.at++
		}
		if err != nil {
			return nil, err
		}
	}
	if len(p.patch.Sections) == 0 {
		return nil, errNoSection
	}
	return &p.patch, nil
}

// header reports whether the two lines that name a file begin at line i.
func (p *unified) header(i int) bool {
	return i+1 < len(p.lines) && strings.HasPrefix(p.lines[i], "--- ") && strings.HasPrefix(p.lines[i+1], "+++ ")
}

// A change is what the lines before the hunks say of a file.
type change struct {
	line          int // of the patch
	old, new      string
	created, gone bool
	renamed       bool
	oldMode, mode string
}

// gitFile reads one file of a git diff.
func (p *unified) gitFile() error {
	c := change{line: p.at + 1}
	c.old, c.new = gitNames(strings.TrimPrefix(p.lines[p.at], "diff --git "))
	for p.at++; p.at < len(p.lines); p.at++ {
		key, value := extended(p.lines[p.at])
		switch key {
		case "old mode", "deleted file mode":
			c.oldMode = value
			c.gone = c.gone || key == "deleted file mode"
		case "new mode", "new file mode":
			c.mode = value
			c.created = c.created || key == "new file mode"
		case "rename from":
			c.old, c.renamed = unquoteName(value), true
		case "rename to":
			c.new, c.renamed = unquoteName(value), true
		case "copy from", "copy to":
			return invalidHunk(p.at+1, "copies are not supported.", "Give the copy as a new file.")
		case "GIT binary patch", "Binary files":
			return invalidHunk(p.at+1, "binary patches are not supported.", "Write the file in another way.")
		case "index", "similarity index", "dissimilarity index":
		default:
			return p.file(c)
		}
	}
	return p.file(c)
}

// extended splits a line of git's extended header; an unknown one has no key.
func extended(line string) (key, value string) {
	for _, key := range []string{
		"old mode", "new mode", "deleted file mode", "new file mode", "rename from", "rename to", "copy from", "copy to",
		"similarity index", "dissimilarity index", "index", "GIT binary patch", "Binary files",
	} {
		if value, ok := strings.CutPrefix(line, key); ok && (value == "" || value[0] == ' ') {
			return key, strings.TrimSpace(value)
		}
	}
	return "", ""
}

// file reads --- and +++, if they are there, and the hunks.
func (p *unified) file(c change) error {
	if p.header(p.at) {
		old, created := fileName(p.lines[p.at][len("--- "):])
		name, gone := fileName(p.lines[p.at+1][len("+++ "):])
		if !c.renamed {
			c.old, c.new = stripped(old, name)
		}
		c.created, c.gone = c.created || created, c.gone || gone
		p.at += 2
	}
	s, err := c.section()
	if err != nil {
		return err
	}
	for p.at < len(p.lines) && hunkHeader().MatchString(p.lines[p.at]) {
		chunk, err := p.hunk()
		if err != nil {
			return err
		}
		s.Chunks = append(s.Chunks, chunk)
	}
	if len(s.Chunks) == 0 && s.Kind == Update && s.MoveTo == "" && s.Mode == nil {
		return emptyUpdate(c.line, s.Path)
	}
	if s.Kind == Add {
		if err := s.takeContent(); err != nil {
			return err
		}
	}
	p.patch.Sections = append(p.patch.Sections, s)
	return nil
}

// section is the section of a change, without its hunks.
func (c change) section() (Section, error) {
	s := Section{Kind: Update, Path: c.new, Line: c.line, Fresh: true}
	switch {
	case c.created && c.gone:
		return s, invalidHunk(c.line, "a file cannot be created and deleted at once.", "")
	case c.created:
		s.Kind = Add
	case c.gone:
		s.Kind, s.Path = Delete, c.old
	case c.renamed && c.old != c.new:
		s.Path, s.MoveTo = c.old, c.new
	}
	for _, mode := range []string{c.oldMode, c.mode} {
		switch mode {
		case "", "100644", "100755":
		default:
			return s, invalidHunk(c.line, "links and submodules cannot be patched (mode "+mode+").", "")
		}
	}
	if c.mode != "" && c.mode != c.oldMode {
		executable := c.mode == "100755"
		s.Mode = &executable
	}
	for _, path := range []string{s.Path, s.MoveTo} {
		if err := checkRelative(path); err != nil {
			return s, err
		}
	}
	if s.Path == "" || c.renamed && c.new == "" {
		return s, invalidHunk(c.line, "the name of the file is missing.", "Lines '--- a/{path}' and '+++ b/{path}' stand before the hunks of a file.")
	}
	return s, nil
}

// takeContent makes the hunk of a new file its content.
func (s *Section) takeContent() error {
	for _, c := range s.Chunks {
		for _, l := range c.Lines {
			if l.Op != Added {
				return invalidHunk(c.Line, "a new file has only added lines.", "")
			}
			s.Content = append(s.Content, l.Text)
		}
		s.NoEnd = c.NoEnd
	}
	s.Chunks = nil
	return nil
}

var hunkHeader = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@`)
})

// hunk reads one hunk. It ends where its counts are used up, or at a line that can
// be none of its own.
func (p *unified) hunk() (Chunk, error) {
	m := hunkHeader().FindStringSubmatch(p.lines[p.at])
	number := func(text string) int {
		n, err := strconv.Atoi(text)
		if err != nil {
			return 1
		}
		return n
	}
	c := Chunk{Line: p.at + 1, Unified: true, Hint: number(m[1])}
	left, added := number(m[2]), number(m[4])
	for p.at++; p.at < len(p.lines); p.at++ {
		line := p.lines[p.at]
		if strings.HasPrefix(line, `\`) {
			if n := len(c.Lines); n > 0 {
				c.NoEnd = c.NoEnd || c.Lines[n-1].Op == Added
			}
			continue
		}
		if p.ends(line, left, added) {
			break
		}
		l := Line{Op: Context}
		if line != "" {
			l = Line{Op: Op(line[0]), Text: line[1:]}
		}
		if l.Op != Added {
			left--
		}
		if l.Op != Removed {
			added--
		}
		c.Lines = append(c.Lines, l)
	}
	if len(c.Lines) == 0 {
		return c, noLines(c.Line)
	}
	return c, nil
}

// ends reports whether a line is no longer the hunk's, of which so many lines of
// the old and the new file are still to come.
func (p *unified) ends(line string, left, added int) bool {
	done := left <= 0 && added <= 0
	switch {
	case line == "":
		return done
	case !strings.ContainsRune(" -+", rune(line[0])):
		return true
	case line == "-- ": // the signature of a mail
		return done
	case p.header(p.at): // or one removed and one added line that look like it
		hunk := p.at+2 < len(p.lines) && hunkHeader().MatchString(p.lines[p.at+2])
		return done || hunk && (left != 1 || added != 1)
	}
	return false
}

// gitNames reads the two names of a "diff --git" line.
func gitNames(names string) (old, name string) {
	if strings.HasPrefix(names, `"`) {
		if end := quotedEnd(names); end > 0 {
			return stripped(unquoteName(names[:end]), unquoteName(strings.TrimSpace(names[end:])))
		}
	}
	for i := 0; i < len(names); i++ {
		if names[i] != ' ' {
			continue
		}
		old, name := stripped(unquoteName(names[:i]), unquoteName(names[i+1:]))
		if old == name {
			return old, name
		}
	}
	return "", ""
}

// epoch is the time that diff gives a file that is not there.
var epoch = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(1970-01-0[12]|1969-12-31)[ T]`) })

// fileName reads the name on a --- or +++ line; none tells that there is no file.
func fileName(text string) (name string, none bool) {
	if end := quotedEnd(text); end > 0 {
		return unquoteName(text[:end]), false
	}
	name, stamp, _ := strings.Cut(text, "\t")
	name = strings.TrimRight(name, " ")
	return name, name == devNull || epoch().MatchString(stamp)
}

const devNull = "/dev/null"

// prefixes are what git puts before the old and the new name.
var prefixes = [][2]string{{"a/", "b/"}, {"i/", "w/"}, {"c/", "i/"}, {"c/", "w/"}, {"o/", "w/"}}

// stripped takes git's prefixes off a pair of names. A file that is not there has
// the name of the other.
func stripped(old, name string) (string, string) {
	for _, pre := range prefixes {
		o, okOld := strings.CutPrefix(old, pre[0])
		n, okNew := strings.CutPrefix(name, pre[1])
		if (okOld || old == devNull) && (okNew || name == devNull) {
			old, name = o, n
			break
		}
	}
	if old == devNull {
		old = name
	}
	if name == devNull {
		name = old
	}
	return old, name
}

// quotedEnd is where a name in quotes ends, 0 when there is none.
func quotedEnd(s string) int {
	if !strings.HasPrefix(s, `"`) {
		return 0
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return 0
}

var escape = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\\([0-7]{3}|[abtnvfr"\\])`) })

// unquoteName reads a name that git put in quotes, with its escapes.
func unquoteName(s string) string {
	if len(s) < 2 || quotedEnd(s) != len(s) {
		return s
	}
	return escape().ReplaceAllStringFunc(s[1:len(s)-1], func(e string) string {
		if n, err := strconv.ParseUint(e[1:], 8, 8); err == nil {
			return string([]byte{byte(n)})
		}
		return string(map[byte]byte{'a': 7, 'b': 8, 't': 9, 'n': 10, 'v': 11, 'f': 12, 'r': 13, '"': '"', '\\': '\\'}[e[1]])
	})
}

// withExecute is a mode with the right to execute for all that may read, or without it.
func withExecute(mode fs.FileMode, executable bool) fs.FileMode {
	if executable {
		return mode | mode&0o444>>2
	}
	return mode &^ 0o111
}
