//go:build !unix

package sandbox

import "os"

// openListing opens a directory to be listed.
func openListing(dir *os.Root) (*os.File, error) { return dir.Open(".") }
