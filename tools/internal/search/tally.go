package search

import (
	"fmt"
	"strings"
)

// A tally counts what a search looked at and what it left out.
type tally struct {
	files   int // with a match
	matches int // in them; one for each file in Files mode

	searched   int
	ignored    int
	hidden     int
	filtered   int // by include or type
	binary     int
	tooLarge   int
	unreadable int
}

func (t *tally) add(other *tally) {
	t.files += other.files
	t.matches += other.matches
	t.searched += other.searched
	t.ignored += other.ignored
	t.hidden += other.hidden
	t.filtered += other.filtered
	t.binary += other.binary
	t.tooLarge += other.tooLarge
	t.unreadable += other.unreadable
}

func (t *tally) count(what outcome) {
	switch what {
	case wasSearched:
		t.searched++
	case wasBinary:
		t.binary++
	case wasTooLarge:
		t.tooLarge++
	case wasUnreadable:
		t.unreadable++
	}
}

// noMatches is the answer when nothing was found: it says what was not looked at.
func (t *tally) noMatches() string {
	var skipped []string
	note := func(n int, what string) {
		if n > 0 {
			skipped = append(skipped, fmt.Sprintf("%d %s", n, what))
		}
	}
	note(t.ignored, "ignored")
	note(t.hidden, "hidden")
	note(t.filtered, "filtered")
	note(t.binary, "binary")
	note(t.tooLarge, "too large")
	note(t.unreadable, "unreadable")
	if skipped == nil {
		skipped = []string{"none"}
	}
	s := fmt.Sprintf("No matches found\nFiles searched: %d. Skipped: %s.", t.searched, strings.Join(skipped, ", "))
	if t.ignored > 0 || t.hidden > 0 {
		s += "\nSet no_ignore to search ignored files, hidden to search names that begin with a dot."
	}
	return s
}
