package search

import (
	"cmp"
	"fmt"
	"runtime"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
)

// Mode says what an answer shows.
type Mode string

// The modes.
const (
	Files   Mode = "files"   // the path of every file with a match
	Content Mode = "content" // the matching lines, with their paths and numbers
	Count   Mode = "count"   // path and number of matching lines (multiline: of matches)
)

// DefaultTimeout is how long a search may take: a model waits for it.
const DefaultTimeout = 30 * time.Second

// A Query is what to search for and what to show.
type Query struct {
	Pattern string // RE2 as in Go
	Path    string // what to search: cleaned, relative to the workspace; "" is all of it
	Include string // glob on files, "" for all
	Type    string // kind of file, "" for all
	Mode    Mode   // "" is Files

	Limit   int // entries to show; 0 is 100
	Offset  int // first entry to show, counted from 1; 0 is 1
	Context int // lines to show before and after a match in Content mode

	CaseInsensitive bool
	Multiline       bool // match across lines
	NoIgnore        bool // search what ignore files leave out
	Hidden          bool // search names that begin with a dot

	Timeout time.Duration // 0 is DefaultTimeout
	Workers int           // 0 is one per CPU
}

func (q Query) withDefaults() Query {
	q.Path = cmp.Or(q.Path, ".")
	q.Mode = cmp.Or(q.Mode, Files)
	q.Limit = cmp.Or(q.Limit, 100)
	q.Offset = cmp.Or(q.Offset, 1)
	q.Timeout = cmp.Or(q.Timeout, DefaultTimeout)
	q.Workers = cmp.Or(q.Workers, runtime.GOMAXPROCS(0))
	return q
}

// unit is what Limit and Offset count.
func (q *Query) unit() string {
	if q.Mode == Content {
		return "matches"
	}
	return "files"
}

// A PastEndError says that a page begins behind the last entry.
type PastEndError struct {
	Offset int    // as asked for
	Of     string // what was paged, "" for a search
	Total  int    // how many entries there are
	Unit   string // what they are: "files", "matches", "entries"
}

func (e *PastEndError) Error() string {
	of := ""
	if e.Of != "" {
		of = " of " + e.Of
	}
	return fmt.Sprintf("offset %d is past the end%s (%d %s).", e.Offset, of, e.Total, e.Unit)
}
func (*PastEndError) Code() fault.Code { return fault.BadInput }

// A TimeoutError says that time was up before anything was found.
type TimeoutError struct{ After time.Duration }

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("Search timed out after %g s.", e.After.Seconds())
}
func (*TimeoutError) Code() fault.Code { return fault.TimedOut }

// Hint says how to search less.
func (e *TimeoutError) Hint() string { return "Search a smaller directory, or give include or type." }
