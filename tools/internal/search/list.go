package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxCounted is how many entries of a directory are counted at most: more is
// no number that helps, and counting takes time.
const maxCounted = 100_000

// A ListQuery is which part of a directory to show.
type ListQuery struct {
	Path   string // cleaned, relative to the workspace; "." or "" is the workspace
	Given  string // the path as the caller spelled it, for errors; "" is Path
	Offset int    // first entry to show, counted from 1; 0 is 1
	Limit  int    // entries to show; 0 is 50
	Depth  int    // levels to enter, 1 shows the direct children only; 0 is 2
}

// List shows dir, which q.Path names, as a tree: an entry per line, each
// directory in byte order, without a line feed at the end. It leaves dir open.
//
// Errors are *[PastEndError], the context's, and those of reading dir itself; a
// directory below it that cannot be read is shown and not entered.
func List(ctx context.Context, dir Dir, q ListQuery) (string, error) {
	q.Path = cmp.Or(q.Path, ".")
	q.Given = cmp.Or(q.Given, q.Path)
	q.Offset = cmp.Or(q.Offset, 1)
	q.Limit = cmp.Or(q.Limit, 50)
	q.Depth = cmp.Or(q.Depth, 2)
	l := lister{ctx: ctx, query: &q, end: q.Offset + q.Limit - 1}
	l.most = max(maxCounted, l.end)
	l.inGit = slices.Contains(strings.Split(q.Path, "/"), ".git")
	l.out.WriteString(EscapeName(q.Path) + "/")
	if err := l.list(dir); err != nil && !errors.Is(err, errCounted) {
		return "", err
	}
	return l.finish()
}

// A lister goes through a tree in the order in which it is shown.
type lister struct {
	ctx   context.Context
	query *ListQuery
	end   int      // last entry of the page
	most  int      // entries to count
	inGit bool     // .git may be entered
	above []string // names of the directories that are entered
	count int      // entries met
	full  bool     // there are more than most
	out   strings.Builder
}

// errCounted ends a listing that has counted enough.
var errCounted = errors.New("enough entries counted")

// list shows the entries of d and what is below them.
func (l *lister) list(d Dir) error {
	if err := l.ctx.Err(); err != nil {
		return err
	}
	entries, err := d.ReadDir()
	if err != nil && len(l.above) == 0 {
		return err
	}
	if l.count < l.end { // behind the page order matters no more
		slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	}
	for _, e := range entries {
		if l.count == l.most {
			l.full = true
			return errCounted
		}
		l.count++
		if l.query.Offset <= l.count && l.count <= l.end {
			l.show(e)
		}
		if err := l.enter(d, e); err != nil {
			return err
		}
	}
	return nil
}

func (l *lister) enter(d Dir, e Entry) error {
	if e.Kind != Directory || len(l.above)+1 >= l.query.Depth || e.Name == ".git" && !l.inGit {
		return nil
	}
	sub, err := d.OpenDir(e.Name)
	if err != nil {
		return nil
	}
	defer sub.Close()
	l.above = append(l.above, e.Name)
	defer func() { l.above = l.above[:len(l.above)-1] }()
	return l.list(sub)
}

// show prints an entry; above the first one of a page the directories it is in.
func (l *lister) show(e Entry) {
	if l.count == l.query.Offset {
		for i, name := range l.above {
			l.line(i, name, "/")
		}
	}
	l.line(len(l.above), e.Name, marks[e.Kind])
}

// marks are shown behind names.
var marks = [...]string{Regular: "", Directory: "/", Link: "@", Special: "?"}

func (l *lister) line(depth int, name, mark string) {
	l.out.WriteByte('\n')
	for range depth + 1 {
		l.out.WriteString("  ")
	}
	l.out.WriteString(EscapeName(name))
	l.out.WriteString(mark)
}

func (l *lister) finish() (string, error) {
	q := l.query
	switch left := l.count - l.end; {
	case l.count == 0 && q.Offset == 1:
		l.out.WriteString("\n  (empty directory)")
	case l.count < q.Offset:
		return "", &PastEndError{Offset: q.Offset, Of: q.Given, Total: l.count, Unit: "entries"}
	case l.full:
		fmt.Fprintf(&l.out, "\n\n[... more than %d entries, next offset %d ...]", left, l.end+1)
	case left > 0:
		fmt.Fprintf(&l.out, "\n\n[... %d more entries, next offset %d ...]", left, l.end+1)
	}
	return l.out.String(), nil
}
