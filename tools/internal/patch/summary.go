package patch

import "strings"

// maxNotes is how many notes a summary has at most.
const maxNotes = 10

// A summary gathers what is told about an applied patch.
type summary struct {
	added, modified, deleted list
	notes                    []string
}

// A list is paths in order, each once.
type list struct {
	paths []string
	seen  map[string]bool
}

func (l *list) add(path string) {
	if l.seen[path] {
		return
	}
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	l.seen[path] = true
	l.paths = append(l.paths, path)
}

func (s *summary) String() string {
	var b strings.Builder
	b.WriteString("Success. Updated the following files:")
	for _, group := range [...]struct {
		letter string
		list   *list
	}{{"A", &s.added}, {"M", &s.modified}, {"D", &s.deleted}} {
		for _, path := range group.list.paths {
			b.WriteString("\n" + group.letter + " " + path)
		}
	}
	for i, note := range s.notes[:min(len(s.notes), maxNotes)] {
		if i == 0 {
			b.WriteString("\n")
		}
		b.WriteString("\nNote: " + note)
	}
	return b.String()
}
