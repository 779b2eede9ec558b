package textedit

import "bytes"

var (
	lf   = []byte("\n")
	crlf = []byte("\r\n")
)

// lineBreak is what ends lines in data: CRLF when more than half of its line
// breaks are CRLF, else LF.
func lineBreak(data []byte) string {
	if 2*bytes.Count(data, crlf) > bytes.Count(data, lf) {
		return "\r\n"
	}
	return "\n"
}

// countLines is how many lines data has; what follows the last LF is a line
// unless it is empty.
func countLines[T string | []byte](data T) int64 {
	n := int64(bytes.Count([]byte(data), lf))
	if len(data) > 0 && data[len(data)-1] != '\n' {
		n++
	}
	return n
}
