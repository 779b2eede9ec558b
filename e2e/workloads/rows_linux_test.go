package workloads

import "slices"

// table is everything that docs/workloads.md says.
var table = slices.Concat(source, languages, services, machine)

// rows are the rows of all sections.
func rows() (all []row) {
	for _, s := range table {
		all = append(all, s.rows...)
	}
	return all
}
