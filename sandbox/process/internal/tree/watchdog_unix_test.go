//go:build unix

package tree

import (
	"strings"
	"testing"
)

// TestHeed: what was released is not ended, nor what is no group of processes that the server has started.
func TestHeed(t *testing.T) {
	c := heed(strings.NewReader("+12\n+13\n-12\n+\"/a b\"\n+\"/c\"\n-\"/c\"\n+1\n+-5\n\nx\n"))
	if len(c.Groups) != 1 || !c.Groups[13] || len(c.Dirs) != 1 || !c.Dirs["/a b"] {
		t.Errorf("got %+v", c)
	}
}
