//go:build !unix

package disk

import "os"

// openListing opens a directory to be listed.
func OpenListing(dir *os.Root) (*os.File, error) { return dir.Open(".") }
