package patch

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// The marker lines of the format.
const (
	beginPatch  = "*** Begin Patch"
	endPatch    = "*** End Patch"
	environment = "*** Environment ID:"
	addFile     = "*** Add File: "
	deleteFile  = "*** Delete File: "
	updateFile  = "*** Update File: "
	moveTo      = "*** Move to: "
	endOfFile   = "*** End of File"
)

// Parse reads the text of a patch, which may also be a unified diff. It forgives what models commonly get wrong
// and does not change the meaning: blank lines between sections, padded markers,
// CRLF, a here-document around the patch. Errors are *SyntaxError or *PathError.
func Parse(text string) (*Patch, error) {
	if isUnified(text) {
		return parseUnified(text)
	}
	lines := unwrap(splitText(text))
	if first := strings.TrimSpace(lines[0]); first != beginPatch {
		return nil, noBegin(first)
	}
	last := len(lines) - 1
	if strings.TrimSpace(lines[last]) != endPatch {
		return nil, errNoEnd
	}
	p := parser{lines: lines[:last], at: 1}
	if err := p.environment(); err != nil {
		return nil, err
	}
	if err := p.sections(); err != nil {
		return nil, err
	}
	if len(p.patch.Sections) == 0 {
		return nil, errNoSection
	}
	return &p.patch, nil
}

// splitText returns the lines of the trimmed text without their ends, at least one.
func splitText(text string) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\r")
	}
	return lines
}

// hereDoc is the first line of a here-document: `<<EOF`, `apply_patch <<'EOF'`.
var hereDoc = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*(?:(?:apply_patch|applypatch|cat)\s*)?<<-?(['"]?)([A-Za-z_][A-Za-z0-9_]*)(['"]?)\s*$`)
})

// unwrap drops a here-document around the patch, of which shell users are fond.
func unwrap(lines []string) []string {
	m := hereDoc().FindStringSubmatch(lines[0])
	last := len(lines) - 1
	if m == nil || m[1] != m[3] || last < 2 || strings.TrimSpace(lines[last]) != m[2] {
		return lines
	}
	lines = lines[1:last]
	for len(lines) > 1 && blank(lines[0]) {
		lines = lines[1:]
	}
	for len(lines) > 1 && blank(lines[len(lines)-1]) {
		lines = lines[:len(lines)-1]
	}
	return lines
}

func blank(line string) bool { return strings.TrimSpace(line) == "" }

func trimRight(line string) string { return strings.TrimRightFunc(line, unicode.IsSpace) }

// A parser stands before line `at`; lines ends before the last marker.
type parser struct {
	lines []string
	at    int // index from 0, so the line's number is at+1
	patch Patch
}

func (p *parser) more() bool { return p.at < len(p.lines) }

// environment passes over the preamble that names an environment.
func (p *parser) environment() error {
	for given := false; p.more(); p.at++ {
		line := strings.TrimSpace(p.lines[p.at])
		id, is := strings.CutPrefix(line, environment)
		switch {
		case line == "":
		case !is || id != "" && id == strings.TrimSpace(id):
			return nil
		case id == "":
			return &SyntaxError{Line: p.at + 1, Reason: "Invalid patch: environment ID must not be empty"}
		case given:
			return &SyntaxError{Line: p.at + 1, Reason: "Invalid patch: environment ID must not be given twice"}
		default:
			given = true
		}
	}
	return nil
}

// sections reads all sections.
func (p *parser) sections() error {
	for p.more() {
		line := strings.TrimSpace(p.lines[p.at])
		if line == "" {
			p.at++
			continue
		}
		kind, path, ok := sectionHeader(line)
		if !ok {
			return notAHeader(p.at+1, line)
		}
		if err := checkRelative(path); err != nil {
			return err
		}
		s := Section{Kind: kind, Path: path, Line: p.at + 1}
		p.at++
		if err := p.body(&s); err != nil {
			return err
		}
		p.patch.Sections = append(p.patch.Sections, s)
	}
	return nil
}

// sectionHeader reads a trimmed line as the start of a section.
func sectionHeader(line string) (kind Kind, path string, ok bool) {
	for kind, marker := range [...]string{Add: addFile, Delete: deleteFile, Update: updateFile} {
		if path, ok := strings.CutPrefix(line, marker); ok {
			return Kind(kind), strings.TrimSpace(path), true
		}
	}
	return 0, "", false
}

func checkRelative(path string) error {
	if strings.HasPrefix(path, "/") {
		return &PathError{Path: path, Err: ErrNotRelative}
	}
	return nil
}

func (p *parser) body(s *Section) error {
	switch s.Kind {
	case Add:
		p.addBody(s)
		return nil
	case Update:
		return p.updateBody(s)
	}
	return nil
}

// addBody reads the lines of a new file. A blank line counts when a line of the
// file follows it.
func (p *parser) addBody(s *Section) {
	blanks := 0
	for ; p.more(); p.at++ {
		text, ok := strings.CutPrefix(p.lines[p.at], "+")
		switch {
		case ok:
			s.Content = append(s.Content, slices.Repeat([]string{""}, blanks)...)
			s.Content = append(s.Content, text)
			blanks = 0
		case blank(p.lines[p.at]):
			blanks++
		default:
			return
		}
	}
}
