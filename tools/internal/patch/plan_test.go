package patch

import (
	"github.com/perstack-ai/perstack-base/sandbox/fault"

	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
)

// swap is a section that turns x into y.
func swap(path string) string { return "*** Update File: " + path + "\n@@\n-x\n+y" }

// The planned tree: what sections make of one another's work, and of links.
func TestPlan(t *testing.T) {
	type tree = map[string]string
	for _, c := range []struct {
		name        string
		files       tree // "-> target" is a link
		patch       string
		want        tree
		answer, err string
	}{
		{"two updates compose", tree{"a": "1\n2\n"}, body("*** Update File: a", "-2", "+3", "*** Update File: ./a", "-1", "+0", " 3"),
			tree{"a": "0\n3\n"}, "M a\nM ./a", ""},
		{"add, then update", tree{}, body("*** Add File: a", "+x", swap("a")), tree{"a": "y\n"}, "A a\nM a", ""},
		{"move, then update the new name", tree{"a": "1\nx\n"}, body("*** Update File: a", "*** Move to: b", "-1", "+0", swap("b")), tree{"b": "0\ny\n"}, "M b", ""},
		{"the old name is gone", tree{"a": "x\n"}, body("*** Update File: a", "*** Move to: b", swap("a")), nil, "", "File a does not exist."},
		{"swap two files", tree{"a": "1\n", "b": "2\n"}, body("*** Update File: a", "*** Move to: c", "*** Update File: b", "*** Move to: a", "*** Update File: c", "*** Move to: b"),
			tree{"a": "2\n", "b": "1\n"}, "M c\nM a\nM b", ""},
		{"delete a, then add a/b", tree{"a": "x\n"}, body("*** Delete File: a", "*** Add File: a/b/c", "+n"), tree{"a/b/c": "n\n"}, "A a/b/c\nD a", ""},
		{"delete a, then look below it", tree{"a": "x\n"}, body("*** Delete File: a", swap("a/b")), nil, "", "File a/b does not exist."},
		{"delete a, add a/b, delete a", tree{"a": "x\n"}, body("*** Delete File: a", "*** Add File: a/b", "*** Delete File: a"), nil, "", "a is a directory, not a file."},
		{"add a/b, then a", tree{}, body("*** Add File: a/b", "*** Add File: a"), nil, "", "a is a directory, not a file."},
		{"add a, then a/b", tree{}, body("*** Add File: a", "*** Add File: a/b"), nil, "", "a is a file, so a/b cannot be created below it."},
		{"delete a, add a/b, then a/b/c", tree{"a": ""}, body("*** Delete File: a", "*** Add File: a/b", "*** Add File: a/b/c"), nil, "", "a/b is a file, so a/b/c cannot be created below it."},
		{"add below a file", tree{"d/a": "x\n"}, body("*** Add File: d/a/b/c"), nil, "", "d/a is a file, so d/a/b/c cannot be created below it."},
		{"update below a file", tree{"a": "x\n"}, body(swap("a/b")), nil, "", "File a/b does not exist."},
		{"delete what was added", tree{}, body("*** Add File: a", "+x", "*** Delete File: a"), tree{}, "A a\nD a", ""},
		{"delete twice", tree{"a": ""}, body("*** Delete File: a", "*** Delete File: a"), nil, "", "File a does not exist."},
		{"delete and add again", tree{"a": "x\n"}, body("*** Delete File: a", "*** Add File: a", "+n"), tree{"a": "n\n"}, "A a\nD a", ""},
		{"update through a link", tree{"a": "x\n", "l": "-> a"}, body(swap("l")), tree{"a": "y\n", "l": "-> a"}, "M l", ""},
		{"link and target are one file", tree{"a": "x\n1\n", "l": "-> a"}, body(swap("l"), "*** Update File: a", " y", "-1"), tree{"a": "y\n", "l": "-> a"}, "M l\nM a", ""},
		{"update through a linked directory", tree{"d/a": "x\n", "l": "-> d"}, body(swap("l/a")), tree{"d/a": "y\n", "l": "-> d"}, "M l/a", ""},
		{"add through a dangling link", tree{"l": "-> a"}, body("*** Add File: l", "+n"), tree{"a": "n\n", "l": "-> a"}, "A l", ""},
		{"update through a dangling link", tree{"l": "-> a"}, body(swap("l")), nil, "", "File l does not exist."},
		{"a link to what was added", tree{"l": "-> a"}, body("*** Add File: a", "+x", swap("l")), tree{"a": "y\n", "l": "-> a"}, "A a\nM l", ""},
		{"delete takes the link", tree{"a": "x\n", "l": "-> a"}, body("*** Delete File: l"), tree{"a": "x\n"}, "D l", ""},
		{"delete a link that leads outside", tree{"l": "-> ../up"}, body("*** Delete File: l"), tree{}, "D l", ""},
		{"delete a link to a directory", tree{"d/a": "", "l": "-> d"}, body("*** Delete File: l"), tree{"d/a": ""}, "D l", ""},
		{"update through a link that leads outside", tree{"l": "-> ../up"}, body(swap("l")), nil, "", errOutside.Error()},
		{"add below a link that leads outside", tree{"l": "-> ../up"}, body("*** Add File: l/a"), nil, "", errOutside.Error()},
		{"the link is gone, a directory takes its place", tree{"l": "-> ../up"}, body("*** Delete File: l", "*** Add File: l/a", "+n"), tree{"l/a": "n\n"}, "A l/a\nD l", ""},
		{"the link is gone, a file takes its place", tree{"a": "x\n", "l": "-> a"}, body("*** Delete File: l", "*** Add File: l", "+n"), tree{"a": "x\n", "l": "n\n"}, "A l\nD l", ""},
		{"move takes the link", tree{"a": "x\n", "l": "-> a"}, body("*** Update File: l", "*** Move to: b", "-x", "+y"), tree{"a": "x\n", "b": "y\n"}, "M b", ""},
		{"move to the same file", tree{"a": "x\n"}, body("*** Update File: a", "*** Move to: d/../a", "-x", "+y"), tree{"a": "y\n"}, "M d/../a", ""},
		{"move to a link to the same file", tree{"a": "x\n", "l": "-> a"}, body("*** Update File: a", "*** Move to: l", "-x", "+y"), tree{"a": "y\n", "l": "-> a"}, "M l", ""},
		{"rename keeps the bytes", tree{"a": "x\r\xff\x00"}, body("*** Update File: a", "*** Move to: d/b"), tree{"d/b": "x\r\xff\x00"}, "M d/b", ""},
		{"move below itself", tree{"a": "x\n"}, body("*** Update File: a", "*** Move to: a/b"), nil, "", "a is a file, so a/b cannot be created below it."},
		{"outside by name", tree{}, body("*** Add File: ../a"), nil, "", errOutside.Error()},
		{"up and back in", tree{}, body("*** Add File: no/../a"), tree{"a": ""}, "A no/../a", ""},
		{"a directory", tree{"d/a": ""}, body(swap("d")), nil, "", "d is a directory, not a file."},
		{"the root", tree{}, body("*** Delete File: ."), nil, "", ". is a directory, not a file."},
		{"the order of the answer", tree{"m": "x\n", "d": ""}, body("*** Delete File: d", swap("m"), "*** Add File: b", "*** Add File: a"), tree{"m": "y\n", "a": "", "b": ""}, "A b\nA a\nM m\nD d", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDisk(t)
			for name, data := range c.files {
				if to, ok := strings.CutPrefix(data, "-> "); ok {
					d.link(t, to, name)
				} else {
					d.write(t, name, []byte(data))
				}
			}
			answer, err := d.run(t, c.patch)
			if c.err != "" {
				if err == nil || err.Error() != c.err {
					t.Errorf("error %v, want %s", err, c.err)
				}
				c.want = c.files
			} else if want := "Success. Updated the following files:\n" + c.answer; err != nil || answer != want {
				t.Errorf("got %q, %v\nwant %q", answer, err, want)
			}
			if got := d.files(t); !maps.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestPlanModes(t *testing.T) {
	d := newDisk(t)
	d.write(t, "a", []byte("x\n"))
	d.write(t, "ro", []byte("x\n"))
	for name, mode := range map[string]fs.FileMode{"a": 0o751, "ro": 0o444} {
		if err := os.Chmod(filepath.Join(d.root, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.run(t, body(swap("ro"))); !errors.Is(err, fault.ErrNotWritable) || err.Error() != "File ro is not writable." {
		t.Errorf("error %v", err)
	}
	if _, err := d.run(t, body("*** Delete File: ro", swap("a"), "*** Update File: a", "*** Move to: b")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(d.root, "b"))
	if err != nil || info.Mode().Perm() != 0o751 {
		t.Errorf("%v, %v", info, err)
	}
}

// huge is a Tree of one file that is larger than it should be.
type huge struct{ single }

func (huge) Lookup(string, bool) (Entry, error) {
	return Entry{Name: "f", Mode: 0o644, Size: MaxBytes + 1}, nil
}

func TestPlanLimits(t *testing.T) {
	testlevel.NotQuick(t, "makes patches as large as they may be")
	p, err := Parse(body(swap("f")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Plan(huge{single("x\n")}); err == nil || err.Error() != "File f is too large to patch (limit 64 MiB)." {
		t.Errorf("error %v", err)
	}
	many := append([]byte("x\n"), strings.Repeat("\n", MaxLines)...)
	if _, err := p.Plan(single(many)); !errors.Is(err, ErrTooManyLines) {
		t.Errorf("error %v", err)
	}
	if _, err := p.Plan(single(many[:len(many)-1])); err != nil {
		t.Error("one line less:", err)
	}
}

func TestSummaryHasFewNotes(t *testing.T) {
	s := summary{notes: strings.Split(strings.Repeat("f:1: n ", 30), " ")}
	s.modified.add("f")
	s.modified.add("f")
	if got := s.String(); strings.Count(got, "Note: ") != maxNotes || strings.Count(got, "\nM f") != 1 {
		t.Error(got)
	}
}
