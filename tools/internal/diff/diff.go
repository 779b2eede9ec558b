package diff

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/perstack-ai/perstack-base/tools/internal/outcut"
)

// The bounds of what is shown, all in bytes.
const (
	MaxBytes = 4 << 20  // of a file that is read only to be compared
	maxDiff  = 64 << 10 // of the diff of all files: it travels with the result
	maxPart  = 2 << 20  // of the part of a file that is compared, see trim
	maxLine  = 4 << 10  // of one line
	sniffed  = 8000     // of a file that are looked at for NUL, as git does
	roomNote = 256      // that a note at the end may have
)

// A Change is what became of one file.
type Change struct {
	From, To string // its path before and after; "" = there was, or is, none
	Old, New []byte
	Omitted  string // why Old is not known, in words that follow the path
}

// Unified returns the diff of all changes; "" when nothing changed. What does not fit
// is left out at the end of a line, of a file or of the diff, with a note that begins
// with a backslash, as the one about a missing newline does.
func Unified(changes []Change) string {
	w := &writer{room: maxDiff - roomNote}
	for i, c := range changes {
		if !w.file(c) {
			fmt.Fprintf(&w.text, "\\ The diff would have more than %d KiB: ", maxDiff>>10)
			if left := len(changes) - i - 1; left > 0 {
				fmt.Fprintf(&w.text, "the rest of this file and %d more files are not shown.\n", left)
			} else {
				w.text.WriteString("the rest of this file is not shown.\n")
			}
			break
		}
	}
	return w.text.String()
}

// A writer puts lines into a text of bounded size.
type writer struct {
	text strings.Builder
	room int // bytes that the text may have
}

// line adds a line, unless there is no room for it.
func (w *writer) line(prefix, text string) bool {
	const cut = "… (%d bytes)"
	if len(text) > maxLine {
		text = outcut.Prefix(text, maxLine) + fmt.Sprintf(cut, len(text))
	}
	text = strings.ToValidUTF8(text, "\ufffd")
	if w.text.Len()+len(prefix)+len(text)+1 > w.room {
		return false
	}
	w.text.WriteString(prefix + text + "\n")
	return true
}

func (w *writer) lines(all ...string) bool {
	for _, line := range all {
		if !w.line("", line) {
			return false
		}
	}
	return true
}

// file adds one file; false says that something of it did not fit.
func (w *writer) file(c Change) bool {
	same := c.Omitted == "" && bytes.Equal(c.Old, c.New)
	if same && c.From == c.To {
		return true
	}
	head, from, to := header(c)
	switch {
	case !w.lines(head...):
		return false
	case c.Omitted != "":
		return w.line(`\ `, "Not compared: it "+c.Omitted+".")
	case same:
		return true
	case binary(c.Old) || binary(c.New):
		return w.line("", "Binary files "+from+" and "+to+" differ")
	}
	return w.compare(c, from, to)
}

// header is what git writes above the changes of a file, and what it calls its two sides.
func header(c Change) (lines []string, from, to string) {
	from, to = name("a/", cmp.Or(c.From, c.To)), name("b/", cmp.Or(c.To, c.From))
	lines = []string{"diff --git " + from + " " + to}
	switch {
	case c.From == "":
		return append(lines, "new file mode 100644"), "/dev/null", to
	case c.To == "":
		return append(lines, "deleted file mode 100644"), from, "/dev/null"
	case c.From != c.To:
		lines = append(lines, "rename from "+name("", c.From), "rename to "+name("", c.To))
	}
	return lines, from, to
}

// compare adds the hunks of a file.
func (w *writer) compare(c Change, oldLabel, newLabel string) bool {
	part := trim(c.Old, c.New)
	if len(part.old) > maxPart || len(part.new) > maxPart {
		return w.line(`\ `, fmt.Sprintf("Not compared: the part that changed has %d bytes before and %d after.", len(part.old), len(part.new)))
	}
	hunks := part.hunks()
	if len(hunks) == 0 {
		return true
	}
	if !w.lines("--- "+oldLabel, "+++ "+newLabel) {
		return false
	}
	for _, h := range hunks {
		if !w.hunk(h, part.skipped) {
			return false
		}
	}
	return true
}

func binary(data []byte) bool { return bytes.IndexByte(data[:min(len(data), sniffed)], 0) >= 0 }

// name is a path as git writes it: quoted when a reader of lines could misunderstand it.
func name(side, path string) string {
	plain := func(r rune) bool {
		return r < ' ' || r == 0x7f || r == '"' || r == '\\' || r == ' ' || r == utf8.RuneError
	}
	if !strings.ContainsFunc(path, plain) {
		return side + path
	}
	var b strings.Builder
	for _, c := range []byte(side + path) {
		switch {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(rune(c)))
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	return `"` + strings.ToValidUTF8(b.String(), "\ufffd") + `"`
}
