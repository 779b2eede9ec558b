package server

import "strings"

// Nearest returns the candidate that a word was probably meant to be, or "". They
// may differ in case, or in one letter of three that is wrong, missing, superfluous
// or swapped with the next: what is farther off is another word.
func Nearest(word string, candidates []string) string {
	best, least := "", 0
	lower := strings.ToLower(word)
	for _, candidate := range candidates {
		d := typos(lower, strings.ToLower(candidate))
		if d <= min(len(word), len(candidate))/3 && (best == "" || d < least) {
			best, least = candidate, d
		}
	}
	return best
}

// typos counts the slips between two words: the optimal string alignment distance.
func typos(a, b string) int {
	before, last := []int(nil), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
