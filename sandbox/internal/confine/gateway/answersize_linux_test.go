//go:build amd64 || arm64

package gateway

import (
	"strings"
	"testing"
)

// TestAnswerSize: whatever a question is made of.
func TestAnswerSize(t *testing.T) {
	question := "\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01\x01a\x00\x00\x01\x00\x01"
	for query, want := range map[string]int{
		"":       512,
		question: 512,
		question + "\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x00": 1232,
		question + "\x00\x00\x29\xff\xff\x00\x00\x00\x00\x00\x00": 4096,
		question + "\x00\x00\x29\x00\x01\x00\x00\x00\x00\x00\x00": 512,
		question + "\xc0":             512,
		question + "\x3f":             512,
		question + "\x00\x00\x29\x04": 512,
		strings.Repeat("\xff", 300):   512,
	} {
		if got := answerSize([]byte(query)); got != want {
			t.Errorf("%q: %d, want %d", query, got, want)
		}
	}
}
