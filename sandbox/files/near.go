package files

import (
	"github.com/perstack-ai/perstack-base/sandbox/internal/disk"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const (
	nearCount = 3     // names a reader can still choose from
	nearEdits = 2     // a slip of the fingers; more is another word
	nearScan  = 20000 // entries looked at: a bound on time, not on sense
)

// Near returns up to three entries of the directory of name that differ from it
// by case only or by at most two edits, nearest first, in the caller's spelling
// of the directory. It is for the hint of a name that does not exist.
func (f *FS) Near(name string) []string {
	st := f.cur.Load()
	if st == nil {
		return nil
	}
	rel, err := f.clean(st, name)
	if err != nil || rel == "." {
		return nil
	}
	list, err := f.ReadDir(orDot(path.Dir(rel)))
	if err != nil {
		return nil
	}
	dir, base := filepath.Dir(filepath.Clean(name)), path.Base(rel)
	var names, out []string
	for _, entry := range list[:min(len(list), nearScan)] {
		if !disk.IsTemp(entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	for _, entry := range Similar(base, names, nearCount) {
		out = append(out, filepath.ToSlash(filepath.Join(dir, entry)))
	}
	return out
}

// Similar returns at most count of the candidates that differ from name by case
// only or by at most two edits, nearest first.
func Similar(name string, candidates []string, count int) []string {
	var ranked [nearEdits + 1][]string
	for _, candidate := range candidates {
		switch d := edits(candidate, name, nearEdits); {
		case candidate == name:
		case strings.EqualFold(candidate, name):
			ranked[0] = append(ranked[0], candidate)
		case d <= nearEdits:
			ranked[d] = append(ranked[d], candidate)
		}
	}
	all := slices.Concat(ranked[:]...)
	return all[:min(len(all), count)]
}

// edits is the number of runes to insert, delete or replace to make b of a;
// any number over limit once it is clear that there are more.
func edits(a, b string, limit int) int {
	x, y := []rune(a), []rune(b)
	if len(x)-len(y) > limit || len(y)-len(x) > limit {
		return limit + 1
	}
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i, r := range x {
		diagonal, least := row[0], i+1
		row[0] = i + 1
		for j, s := range y {
			cost := diagonal
			if r != s {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
			least = min(least, cost)
		}
		if least > limit {
			return limit + 1
		}
	}
	return row[len(y)]
}
