package environ

import (
	"path/filepath"
	"slices"
	"strings"
)

// programs are the endings of files that the system itself runs, in its own order.
var programs = []string{".com", ".exe", ".bat", ".cmd"}

// candidates are the files that a name of a program can mean.
func candidates(file string) []string {
	if MayExecute(file) {
		return []string{file}
	}
	all := make([]string, 0, len(programs))
	for _, ending := range programs {
		all = append(all, file+ending)
	}
	return append(all, file) // which is no program, if it exists
}

// MayExecute goes by the endings.
func MayExecute(file string) bool {
	return slices.Contains(programs, strings.ToLower(filepath.Ext(file)))
}
