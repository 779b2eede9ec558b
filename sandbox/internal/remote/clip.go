package remote

import (
	"unicode/utf8"

	"github.com/perstack-ai/perstack-base/sandbox/process/capture"
)

// Clip bounds a sentence.
func Clip(s string) string {
	if len(s) <= MaxSentence && utf8.ValidString(s) {
		return s
	}
	return capture.ValidText(capture.HeadOf([]byte(s), MaxSentence))
}
