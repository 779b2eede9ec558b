package tools

import "testing"

func TestClean(t *testing.T) {
	long := ""
	for range 300 {
		long += "é"
	}
	for in, want := range map[string]string{
		"plain":                           "plain",
		"  spaces\t":                      "spaces",
		"\x1b[1;32mok\x1b[0m":             "ok",
		"\x1b]0;title\x07text":            "text",
		"10%\r50%\r100%":                  "100%",
		"10%\r100%\r":                     "100%",
		"bell\a and null\x00":             "bell and null",
		"bad \xff byte":                   "bad \ufffd byte",
		long:                              long[:2*progressWidth],
		"\x1b[31m":                        "",
		"link \x1b]8;;http://x\x1b\\here": "link here",
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
}
