//go:build !unix

package web

// descriptors is how many this program may have open.
func descriptors() int { return 2 * mostConns }
