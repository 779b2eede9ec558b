package textedit

import (
	"bytes"
	"strings"
)

// ReplaceFirst returns data with the first occurrence of oldText replaced by
// newText. Nothing in the texts is a pattern. Matching takes every CRLF as LF, in
// data and in both texts; the line breaks of newText are written as most of the
// breaks of data are, and all bytes outside the match stay. An empty oldText
// stands at the start, behind a BOM; texts that are equal leave data as it is.
// Errors: *NotTextError when data has NUL or is not valid UTF-8, *NoMatchError.
func ReplaceFirst(data []byte, oldText, newText string) ([]byte, error) {
	if err := checkText(data); err != nil {
		return nil, err
	}
	oldText, newText = toLF(oldText), toLF(newText)
	from, to, ok := locate(data, oldText)
	switch {
	case !ok:
		return nil, explain(data, oldText)
	case oldText == newText:
		return data, nil
	}
	if lineBreak(data) == "\r\n" {
		newText = strings.ReplaceAll(newText, "\n", "\r\n")
	}
	out := make([]byte, 0, len(data)-(to-from)+len(newText))
	out = append(out, data[:from]...)
	out = append(out, newText...)
	return append(out, data[to:]...), nil
}

func toLF(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// locate finds where oldText, which has no CRLF, stands in data.
func locate(data []byte, oldText string) (from, to int, ok bool) {
	if oldText == "" {
		if bytes.HasPrefix(data, utf8BOM) {
			from = len(utf8BOM)
		}
		return from, from, true
	}
	flat := data
	if bytes.Contains(data, crlf) {
		flat = bytes.ReplaceAll(data, crlf, lf)
	}
	at := bytes.Index(flat, []byte(oldText))
	if at < 0 {
		return 0, 0, false
	}
	from = unflatten(data, 0, at)
	return from, unflatten(data, from, len(oldText)), true
}

// unflatten is the place in data that is n bytes behind from when every CRLF
// counts as one byte.
func unflatten(data []byte, from, n int) int {
	for ; n > 0; n-- {
		if data[from] == '\r' && from+1 < len(data) && data[from+1] == '\n' {
			from++
		}
		from++
	}
	return from
}
