// Package textedit reads windows of text files of any size, and edits texts.
//
// Reading starts with [ReadSlice], [ReadWindow] or [ReadNumbered]: three ways in
// which APIs count lines, over one scanner that holds one block of the file at
// a time. Editing starts with [ReplaceFirst], [InsertLines] and [ReplaceLines],
// which take the whole text and return the new one.
//
// What is read comes out as valid UTF-8: each byte that is not part of it is
// U+FFFD, and budgets are counted after that. What is edited keeps every byte
// outside the edit.
package textedit

import (
	"bytes"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
)

// sniffBytes is how much of a file is looked at for NUL.
const sniffBytes = 8192

// A NotTextError says that a file cannot be treated as text.
type NotTextError struct {
	Head   []byte // the beginning of the file, at most 8,192 bytes, to tell its type
	Reason string
}

func (e *NotTextError) Error() string  { return "not text: " + e.Reason }
func (*NotTextError) Code() fault.Code { return fault.NotText }

func notText(data []byte, reason string) error {
	return &NotTextError{Head: bytes.Clone(data[:min(len(data), sniffBytes)]), Reason: reason}
}

// checkHead refuses a file that has NUL near its beginning.
func checkHead(data []byte) error {
	if head := data[:min(len(data), sniffBytes)]; bytes.IndexByte(head, 0) >= 0 {
		return notText(head, "NUL in the first 8,192 bytes")
	}
	return nil
}

// checkText refuses data that is not wholly text.
func checkText(data []byte) error {
	if bytes.IndexByte(data, 0) >= 0 {
		return notText(data, "it contains NUL")
	}
	if !utf8.Valid(data) {
		return notText(data, "it is not valid UTF-8")
	}
	return nil
}

// A PastEndError says that a window begins behind the last line.
type PastEndError struct {
	Offset int64 // the first line wanted, from 1
	Lines  int64 // the lines there are
}

func (e *PastEndError) Error() string {
	return fmt.Sprintf("offset %d is past the end (%d lines)", e.Offset, e.Lines)
}
func (*PastEndError) Code() fault.Code { return fault.BadInput }

// openText checks the beginning of a file and tells whether a BOM stands there.
// Read on from what it returns.
func openText(r io.ReaderAt, size int64) (text io.ReaderAt, bom bool, err error) {
	if text, err = buffered(r, size); err != nil {
		return nil, false, err
	}
	head := make([]byte, min(size, sniffBytes))
	n, err := readAt(text, head, 0)
	if err != nil {
		return nil, false, err
	}
	return text, bytes.HasPrefix(head[:n], utf8BOM), checkHead(head[:n])
}

var utf8BOM = []byte("\uFEFF")
