package patch

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// body puts lines between the markers of a patch.
func body(lines ...string) string {
	return "*** Begin Patch\n" + strings.Join(lines, "\n") + "\n*** End Patch"
}

func TestParseRefusals(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "Invalid patch: The first line of the patch must be '*** Begin Patch'"},
		{"blanks", " \n\t\n", "Invalid patch: The first line of the patch must be '*** Begin Patch'"},
		{"no end", "*** Begin Patch\n*** Add File: a\n+x", "Invalid patch: The last line of the patch must be '*** End Patch'"},
		{"begin only", "*** Begin Patch", "Invalid patch: The last line of the patch must be '*** End Patch'"},
		{"no section", body("", " "), "No files were modified."},
		{"only an environment", body("*** Environment ID: x"), "No files were modified."},
		{"empty environment", body("*** Environment ID:  ", "*** Delete File: a"), "Invalid patch: environment ID must not be empty"},
		{"environment twice", body("*** Environment ID: x", "", "*** Environment ID: y"), "Invalid patch: environment ID must not be given twice"},
		{"environment late", body("*** Delete File: a", "*** Environment ID: y"), "Invalid patch hunk on line 3: '*** Environment ID: y' is not a valid hunk header."},
		{"no blank behind the colon", body("*** Add File:a"), "Invalid patch hunk on line 2: '*** Add File:a' is not a valid hunk header."},
		{"no path", body("*** Add File:  "), "Invalid patch hunk on line 2: '*** Add File:' is not a valid hunk header."},
		{"stray line", body("", "hello"), "Invalid patch hunk on line 3: 'hello' is not a valid hunk header."},
		{"line in a deletion", body("*** Delete File: a", "-x"), "Invalid patch hunk on line 3: '-x' is not a valid hunk header."},
		{"indented line in an addition", body("*** Add File: a", " +x"), "Invalid patch hunk on line 3: '+x' is not a valid hunk header."},
		{"end in the middle", body("*** Add File: a", "+x", "*** End Patch", "+y"), "Invalid patch hunk on line 4: '*** End Patch' is not a valid hunk header."},
		{"begin in an update", body("*** Update File: a", "@@", "-x", "*** Begin Patch "), "Invalid patch hunk on line 5: '*** Begin Patch' is not a valid hunk header."},
		{"unknown marker in an update", body("*** Update File: a", "@@", "-x", "*** Move to: b"), "Invalid patch hunk on line 5: Unexpected line '*** Move to: b'."},
		{"plain line in an update", body("*** Update File: a", "@@", "x"), "Invalid patch hunk on line 4: Unexpected line 'x'."},
		{"header without a blank", body("*** Update File: a", "@@x", "-x"), "Invalid patch hunk on line 3: Unexpected line '@@x'."},
		{"line behind the end of file", body("*** Update File: a", "@@", "-x", "*** End of File", "-y"), "Invalid patch hunk on line 6: Unexpected line '-y'."},
		{"end of file twice", body("*** Update File: a", "-x", "*** End of File", "*** End of File"), "Invalid patch hunk on line 5: Unexpected line '*** End of File'."},
		{"empty update", body("*** Update File: a/b"), "Invalid patch hunk on line 2: Update file hunk for path 'a/b' is empty"},
		{"blank update", body("", "*** Update File: a", "", ""), "Invalid patch hunk on line 3: Update file hunk for path 'a' is empty"},
		{"header without lines", body("*** Update File: a", "@@"), "Invalid patch hunk on line 3: Update hunk does not contain any lines"},
		{"second header without lines", body("*** Update File: a", "-x", "@@ y", "", "@@"), "Invalid patch hunk on line 4: Update hunk does not contain any lines"},
		{"end of file without lines", body("*** Update File: a", "@@ x", "", "*** End of File"), "Invalid patch hunk on line 3: Update hunk does not contain any lines"},
		{"absolute", body("*** Add File: /etc/x"), "path must be relative: /etc/x"},
		{"absolute move", body("*** Update File: a", "*** Move to:  /b"), "path must be relative: /b"},
		{"lines are counted within a wrapper", "<<EOF\n\n*** Begin Patch\nx\n*** End Patch\nEOF", "Invalid patch hunk on line 2: 'x' is not a valid hunk header."},
		{"wrapper of another name", "<<EOF\n" + body("*** Delete File: a") + "\nEND", "Invalid patch: The first line of the patch must be '*** Begin Patch'"},
		{"wrapper of another program", "sh <<EOF\n" + body("*** Delete File: a") + "\nEOF", "Invalid patch: The first line of the patch must be '*** Begin Patch'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Parse(c.text)
			if err == nil || err.Error() != c.want {
				t.Errorf("got %v, %v\nwant %s", p, err, c.want)
			}
		})
	}
}

func TestParseHints(t *testing.T) {
	for text, want := range map[string]string{
		"a\nb":                           "Got: a\nA patch looks like this:\n*** Begin Patch\n",
		strings.Repeat("é", 101) + "\nx": "Got: " + strings.Repeat("é", 100) + "\nA patch",
		body("x"):                        "'*** Add File: {path}', '*** Delete File: {path}', '*** Update File: {path}'",
		body("*** Update File: a", "x"):  "' ' (context)",
	} {
		_, err := Parse(text)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || !strings.Contains(syntax.Hint(), want) {
			t.Errorf("%.20q: %v, hint lacks %q", text, err, want)
		}
	}
}

func TestParseForgives(t *testing.T) {
	update := func(chunks ...Chunk) Section { return Section{Kind: Update, Path: "a", Chunks: chunks} }
	minus := []Line{{Removed, "x"}}
	for _, c := range []struct {
		name, text string
		want       Section
	}{
		{"wrapper of apply_patch", "apply_patch <<'E'\n" + body("*** Delete File: a") + "\nE\n", Section{Kind: Delete, Path: "a"}},
		{"wrapper of cat", "cat <<-E_1\n" + body("*** Delete File: a") + "\n\tE_1\n", Section{Kind: Delete, Path: "a"}},
		{"CRLF and blanks", " *** Begin Patch\r\n\r\n  *** Delete File:   a b \r\n\t\r\n*** End Patch \r\n", Section{Kind: Delete, Path: "a b"}},
		{"blank lines in an addition", body("*** Add File: a", "", "+x", "", "  ", "+", ""), Section{Kind: Add, Path: "a", Content: []string{"", "x", "", "", ""}}},
		{"added markers", body("*** Add File: a", "+*** End Patch"), Section{Kind: Add, Path: "a", Content: []string{"*** End Patch"}}},
		{"no content", body("*** Add File: a"), Section{Kind: Add, Path: "a"}},
		{"pure rename", body("*** Update File: a", "*** Move to: b ", ""), Section{Kind: Update, Path: "a", MoveTo: "b"}},
		{"indented marker is content", body("*** Update File: a", " *** End Patch", "-x"), update(Chunk{Lines: []Line{{Context, "*** End Patch"}, {Removed, "x"}}})},
		{"blank line behind only additions", body("*** Update File: a", "@@", "+x", "", "", "@@ b", "-x"),
			update(Chunk{Lines: []Line{{Added, "x"}}}, Chunk{Headers: []string{"b"}, Lines: minus})},
		{"blank line behind context", body("*** Update File: a", "@@", "-x", ""), update(Chunk{Lines: []Line{{Removed, "x"}, {Context, ""}}})},
		{"explicit blank line", body("*** Update File: a", "@@", "+x", " "), update(Chunk{Lines: []Line{{Added, "x"}, {Context, ""}}})},
		{"headers of an empty chunk go on", body("*** Update File: a", "@@ b", "", "@@  c ", "-x"),
			update(Chunk{Headers: []string{"b", " c"}, Lines: minus})},
		{"leading blank line", body("*** Update File: a", "", "@@", "-x"), update(Chunk{Lines: minus})},
		{"tabs alone", body("*** Update File: a", "@@", "-x", "\t"), update(Chunk{Lines: []Line{{Removed, "x"}, {Context, ""}}})},
		{"end of file, blanks", body("*** Update File: a", "-x", "*** End of File ", " ", "", "@@", "-x"),
			update(Chunk{Lines: minus, EndOfFile: true}, Chunk{Lines: minus})},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Parse(c.text)
			if err != nil {
				t.Fatal(err)
			}
			withoutLines(p)
			if want := []Section{c.want}; !reflect.DeepEqual(p.Sections, want) {
				t.Errorf("got  %+v\nwant %+v", p.Sections, want)
			}
		})
	}
}

// withoutLines takes the line numbers out of a patch.
func withoutLines(p *Patch) {
	for i := range p.Sections {
		p.Sections[i].Line = 0
		for j := range p.Sections[i].Chunks {
			p.Sections[i].Chunks[j].Line = 0
		}
	}
}

func TestPaths(t *testing.T) {
	p, err := Parse(body("*** Add File: a", "*** Update File: b", "*** Move to: c", "*** Delete File: a", "*** Delete File: ./a"))
	if want := []string{"a", "b", "c", "./a"}; err != nil || !reflect.DeepEqual(p.Paths(), want) {
		t.Errorf("%v, %v", p.Paths(), err)
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range loadCases(f) {
		f.Add(c.Patch)
	}
	f.Add(body("*** Add File: a", "+x\r\r"))
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			if err.Error() == "" {
				t.Error("a refusal without a sentence")
			}
			return
		}
		again, err := Parse(p.Format())
		if err != nil {
			t.Fatalf("%v\n%s", err, p.Format())
		}
		withoutLines(p)
		withoutLines(again)
		if !reflect.DeepEqual(p, again) {
			t.Errorf("got %+v\nwant %+v", again, p)
		}
		for _, path := range p.Paths() {
			if !strings.Contains(text, path) {
				t.Errorf("path %q is not in the text", path)
			}
		}
	})
}
