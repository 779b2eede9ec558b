package tools

import (
	"github.com/perstack-ai/perstack-base/sandbox/files"
)

// nearest returns the candidate most like name, or "" when none is near enough
// to be meant.
func nearest(name string, candidates []string) string {
	if near := files.Similar(name, candidates, 1); len(near) > 0 {
		return near[0]
	}
	return ""
}
