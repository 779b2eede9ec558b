package disk

import (
	"os"
	"path/filepath"
)

// withSeparator is a directory's path as those below it begin.
func WithSeparator(dir string) string {
	if os.IsPathSeparator(dir[len(dir)-1]) {
		return dir
	}
	return dir + string(filepath.Separator)
}
