//go:build !linux

package tree

import "os"

// AwaitsPipe cannot be told here.
func AwaitsPipe(Tree, *os.File) bool { return false }

// AwaitsTerminal cannot be told here.
func AwaitsTerminal(Tree, int) bool { return false }
