package search

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"
)

// Grep searches the files of tree and returns the page that q asks for, as text
// without a line feed at its end. That nothing matches is an answer too.
//
// Errors are *[PatternError], *[GlobError], *[TypeError], *[PastEndError],
// *[TimeoutError], the context's, and those of tree about q.Path.
func Grep(ctx context.Context, tree Tree, q Query) (string, error) {
	q = q.withDefaults()
	w, err := prepare(&q)
	if err != nil {
		return "", err
	}
	dir, file, err := tree.Open(q.Path)
	if err != nil {
		return "", err
	}
	limited, cancel := context.WithTimeout(ctx, q.Timeout)
	defer cancel()
	defer context.AfterFunc(limited, func() { w.stop.Store(true) })()

	var hits []hit
	var total tally
	if file != nil {
		hits, total = w.searchFile(file)
	} else {
		hits, total = w.searchDir(tree, dir)
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	a := answer{tree: tree, walk: w, hits: hits, total: total, incomplete: limited.Err() != nil}
	return a.text(ctx)
}

// prepare compiles what q says.
func prepare(q *Query) (*walk, error) {
	w := &walk{query: q}
	var err error
	if w.pattern, err = compilePattern(q.Pattern, q.CaseInsensitive, q.Multiline); err != nil {
		return nil, err
	}
	w.pattern.stateBytes = stateBytes(q.Workers)
	if q.Include != "" {
		if w.glob, err = parseGlob(q.Include); err != nil {
			return nil, err
		}
	}
	if q.Type != "" {
		if w.kind, err = parseType(q.Type); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// searchFile searches the file that the path names, whatever filters say.
func (w *walk) searchFile(file File) ([]hit, tally) {
	defer file.Close()
	worker := w.newWorker()
	prefix, name := path.Split(w.query.Path)
	worker.search(file, prefix, name)
	return worker.hits, worker.tally
}

func (w *walk) searchDir(tree Tree, dir Dir) ([]hit, tally) {
	prefix := ""
	if w.query.Path != "." {
		prefix = w.query.Path + "/"
	}
	w.below = len(prefix)
	var above *rules
	if !w.query.NoIgnore {
		above = rulesAbove(tree, w.query.Path)
	}
	return w.run(dir, prefix, above)
}

// An answer words what a walk found.
type answer struct {
	*walk
	tree       Tree
	hits       []hit
	total      tally
	incomplete bool // time was up
	out        strings.Builder
}

func (a *answer) text(ctx context.Context) (string, error) {
	q := a.query
	entries := a.total.files
	if q.Mode == Content {
		entries = a.total.matches
	}
	switch {
	case entries == 0 && a.incomplete:
		return "", &TimeoutError{q.Timeout}
	case entries == 0:
		return a.total.noMatches(), nil
	case q.Offset > entries:
		return "", &PastEndError{Offset: q.Offset, Total: entries, Unit: q.unit()}
	}
	next := q.Offset + q.Limit
	if q.Mode == Content {
		next = a.content(ctx)
	} else {
		a.files()
	}
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case a.out.Len() == 0 && a.incomplete:
		return "", &TimeoutError{q.Timeout}
	case a.out.Len() == 0: // the files changed between finding and showing
		return a.total.noMatches(), nil
	}
	if more := entries - next + 1; more > 0 {
		fmt.Fprintf(&a.out, "\n\n[... %d more %s, next offset %d ...]", more, q.unit(), next)
	}
	if a.incomplete {
		fmt.Fprintf(&a.out, "\n\n[... stopped after %g s, incomplete ...]", q.Timeout.Seconds())
	}
	return a.out.String(), nil
}

// files lists the files of the page, with their counts in Count mode.
func (a *answer) files() {
	page := a.hits[a.query.Offset-1:]
	for i, h := range page[:min(a.query.Limit, len(page))] {
		if i > 0 {
			a.out.WriteByte('\n')
		}
		a.out.WriteString(EscapeName(h.path))
		if a.query.Mode == Count {
			fmt.Fprintf(&a.out, ":%d", h.n)
		}
	}
}

// maxAnswer is the size from which on no further match is shown on a page, so
// that memory stays bounded.
const maxAnswer = 8 << 20

// contentGrace is what is left at least for reading the lines of a page when
// finding the files took all the time.
const contentGrace = 3 * time.Second

// content shows the matches of the page: it reads the files that hold them
// again. It returns the offset of the next page.
func (a *answer) content(ctx context.Context) (next int) {
	limited, cancel := context.WithTimeout(ctx, a.query.Timeout/10+contentGrace)
	defer cancel()
	s := newShower(a)
	defer context.AfterFunc(limited, func() { s.stop.Store(true) })()

	skip, next := a.query.Offset-1, a.query.Offset
	end := a.query.Offset + a.query.Limit
	for _, h := range a.hits {
		if skip >= h.n {
			skip -= h.n
			continue
		}
		if next == end || s.stop.Load() || a.out.Len() > maxAnswer {
			break
		}
		want := min(h.n-skip, end-next)
		next += want - s.show(h.path, skip, want)
		skip = 0
	}
	a.incomplete = a.incomplete || limited.Err() != nil
	return next
}
