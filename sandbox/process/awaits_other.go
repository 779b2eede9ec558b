//go:build !linux

package process

import "os"

// awaitsPipe cannot be told here.
func awaitsPipe(tree, *os.File) bool { return false }

// awaitsTerminal cannot be told here.
func awaitsTerminal(tree, int) bool { return false }
