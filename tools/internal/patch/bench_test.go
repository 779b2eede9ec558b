package patch

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
)

// single is a Tree of one file, in memory: what is measured is the planning.
type single []byte

func (s single) Lookup(path string, _ bool) (Entry, error) {
	if path != "f" {
		return Entry{Name: path}, fs.ErrNotExist
	}
	return Entry{Name: "f", Mode: 0o644, Size: int64(len(s))}, nil
}

func (s single) ReadFile(string) ([]byte, error) { return s, nil }

// source is a file of n different lines of about 50 bytes.
func source(n int) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprintf("    value_%07d = compute(%07d, \"some text\")", i, i*7919%n)
	}
	return lines
}

// spread is a patch of `chunks` chunks of three lines, spread over the lines,
// each line spelled by edit.
func spread(lines []string, chunks int, edit func(string) string) string {
	var b strings.Builder
	b.WriteString("*** Begin Patch\n*** Update File: f\n")
	step := len(lines) / chunks
	for c := range chunks {
		at := c * step
		fmt.Fprintf(&b, "@@\n %s\n-%s\n+changed %d\n", edit(lines[at]), edit(lines[at+1]), c)
	}
	return b.String() + "*** End Patch"
}

// sections is a patch of the same chunks, each in a section of its own.
func sections(lines []string, chunks int) string {
	text := spread(lines, chunks, same)
	return strings.Replace(strings.ReplaceAll(text, "@@\n", "*** Update File: f\n@@\n"), "*** Update File: f\n", "", 1)
}

func same(s string) string { return s }

// hard makes inputs that repeat themselves: every chunk's lines are everywhere,
// and the chunk is found nowhere, or at the end, in the last pass only.
func hard(lines, chunks int) (file []string, patch string) {
	for i := range lines {
		file = append(file, strings.Repeat("x", 40)+[]string{"a", "b"}[i%7%2])
	}
	var b strings.Builder
	b.WriteString("*** Begin Patch\n*** Update File: f\n")
	for c := range chunks {
		fmt.Fprintf(&b, "@@\n-%s \n-%s\n+%s%d\n", file[c*7], file[c*7+1], "y", c)
	}
	b.WriteString("@@\n")
	for i := range 2000 {
		b.WriteString("-" + file[i] + "\n")
	}
	return file, b.String() + "-" + strings.Repeat("x", 39) + "c\n\n\n\n*** End Patch"
}

func bench(b *testing.B, lines []string, text string, wantErr bool) {
	data := single(strings.Join(lines, "\n") + "\n")
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		p, err := Parse(text)
		if err != nil {
			b.Fatal(err)
		}
		_, err = p.Plan(data)
		if (err != nil) != wantErr {
			b.Fatalf("error %v", err)
		}
		if hinter, ok := err.(interface{ Hint() string }); ok {
			_ = err.Error() + hinter.Hint()
		}
	}
}

func BenchmarkPlan(b *testing.B) {
	for _, scale := range []int{1, 10, 100} {
		lines, chunks := source(1000*scale), max(2*scale, 2)
		last := func(s string) string { return "  " + strings.ReplaceAll(s, "\"", "“") }
		lost := func(s string) string { return strings.Replace(s, "text", "texts", 1) }
		b.Run(fmt.Sprintf("exact/%dx", scale), func(b *testing.B) { bench(b, lines, spread(lines, chunks, same), false) })
		b.Run(fmt.Sprintf("lastPass/%dx", scale), func(b *testing.B) { bench(b, lines, spread(lines, chunks, last), false) })
		b.Run(fmt.Sprintf("refused/%dx", scale), func(b *testing.B) { bench(b, lines, spread(lines, chunks, lost), true) })
		b.Run(fmt.Sprintf("manyChunks/%dx", scale), func(b *testing.B) { bench(b, lines, spread(lines, 250*scale, same), false) })
		b.Run(fmt.Sprintf("sections/%dx", scale), func(b *testing.B) { bench(b, lines, sections(lines, chunks), false) })
		file, patch := hard(4000+1000*scale, 100*scale/2)
		b.Run(fmt.Sprintf("hard/%dx", scale), func(b *testing.B) { bench(b, file, patch, true) })
	}
}
