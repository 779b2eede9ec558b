package diff

import (
	"bytes"
	"fmt"
	"strings"

	udiff "github.com/aymanbagabas/go-udiff"
)

// context is how many unchanged lines stand around a change.
const context = 3

// A part is what is left of two texts without the lines that they have in common at
// both ends, but for the context.
type part struct {
	old, new string
	skipped  int // lines before it
}

// trim makes the work depend on what changed, not on how large the file is.
func trim(old, new []byte) part {
	most := min(len(old), len(new))
	start := 0
	for start < most && old[start] == new[start] {
		start++
	}
	end := 0
	for end < most-start && old[len(old)-1-end] == new[len(new)-1-end] {
		end++
	}
	from := lineStart(old[:start], context)
	// The end of the last common line stays, so that a last line without one is seen as such.
	keep := lineEnd(old[len(old)-end:], context+1)
	cut := end - keep
	return part{
		old: string(old[from : len(old)-cut]), new: string(new[from : len(new)-cut]),
		skipped: bytes.Count(old[:from], []byte("\n")),
	}
}

// lineStart is where the line n before the last one of a text begins.
func lineStart(text []byte, n int) int {
	at := len(text)
	for ; n >= 0; n-- {
		i := bytes.LastIndexByte(text[:at], '\n')
		if i < 0 {
			return 0
		}
		at = i
	}
	return at + 1
}

// lineEnd is where line n of a text ends, counted from 1; its own end is the text's.
func lineEnd(text []byte, n int) int {
	at := 0
	for ; n > 0; n-- {
		i := bytes.IndexByte(text[at:], '\n')
		if i < 0 {
			return len(text)
		}
		at += i + 1
	}
	return at
}

// hunks compares the two.
func (p part) hunks() []*udiff.Hunk {
	work := maxWork
	u, err := udiff.ToUnifiedDiff("", "", p.old, edits(p.old, p.new, &work), context)
	if err != nil {
		return nil // the edits are the library's own
	}
	return u.Hunks
}

// The library gives up looking for what two texts share when some 100 lines differ, and
// replaces all that is left in the middle. From searched lines on, such a middle is
// compared again, until maxWork bytes of a file have been looked at.
const (
	searched = 20
	maxWork  = 4 << 20
)

// edits compares two texts line by line.
func edits(old, new string, work *int) (all []udiff.Edit) {
	*work -= len(old) + len(new)
	for _, e := range udiff.Lines(old, new) {
		middle := old[e.Start:e.End]
		if *work <= 0 || len(middle) == len(old) || strings.Count(middle, "\n") < searched || strings.Count(e.New, "\n") < searched {
			all = append(all, e)
			continue
		}
		for _, inner := range edits(middle, e.New, work) {
			inner.Start, inner.End = inner.Start+e.Start, inner.End+e.Start
			all = append(all, inner)
		}
	}
	return all
}

// hunk adds one hunk. One that does not fit is cut behind a line that does.
func (w *writer) hunk(h *udiff.Hunk, skipped int) bool {
	old, new := 0, 0
	for _, l := range h.Lines {
		if l.Kind != udiff.Insert {
			old++
		}
		if l.Kind != udiff.Delete {
			new++
		}
	}
	if !w.line("", "@@ -"+span(h.FromLine+skipped, old)+" +"+span(h.ToLine+skipped, new)+" @@") {
		return false
	}
	for _, l := range h.Lines {
		text, ended := strings.CutSuffix(l.Content, "\n")
		if !w.line(marks[l.Kind], text) || !ended && !w.line(`\ `, "No newline at end of file") {
			return false
		}
	}
	return true
}

var marks = map[udiff.OpKind]string{udiff.Delete: "-", udiff.Insert: "+", udiff.Equal: " "}

// span is the lines of a hunk on one side: where they begin and how many there are.
func span(first, count int) string {
	if count == 0 {
		first-- // the line after which there are none
	}
	if count == 1 {
		return fmt.Sprint(first)
	}
	return fmt.Sprintf("%d,%d", first, count)
}
