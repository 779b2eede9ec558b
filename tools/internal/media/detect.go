// Package media tells what a file is by its content, whatever its name, and
// prepares images for a model.
//
// Start with [Detect]; [View] turns an image file into one that a model can take.
// Files come as io.ReaderAt and size; no file is read whole before its type and
// size are known to be acceptable.
package media

import (
	"bytes"
	"io"
	"strings"

	"github.com/gabriel-vasile/mimetype"
)

// headBytes is how much of a file decides its type: what mimetype looks at.
const headBytes = 3072

// A Type is what a file is, as a MIME type such as image/png; "" for an empty file.
type Type string

// The types that are accepted somewhere.
const (
	PNG  Type = "image/png"
	JPEG Type = "image/jpeg"
	GIF  Type = "image/gif"
	WebP Type = "image/webp"
	BMP  Type = "image/bmp"
	PDF  Type = "application/pdf"
)

// Detect returns the type of a file by its first bytes. The error is the reader's.
func Detect(file io.ReaderAt) (Type, error) {
	head := make([]byte, headBytes)
	n, err := file.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return "", err
	}
	return DetectBytes(head[:n]), nil
}

// DetectBytes is Detect for the first bytes of a file.
func DetectBytes(head []byte) Type {
	switch {
	case len(head) == 0:
		return ""
	case bytes.HasPrefix(head, []byte("%PDF-")):
		return PDF
	}
	m := mimetype.Detect(head)
	if m.Is("image/vnd.mozilla.apng") {
		return PNG // an animated PNG is a PNG
	}
	if pdf := m.Is(string(PDF)); pdf { // with bytes before the header: no reader need take it
		return "application/octet-stream"
	}
	if m.Is(string(BMP)) && bytes.IndexByte(head, 0) < 0 {
		return "text/plain" // the two letters of a bitmap begin words too, but its header is never without NUL
	}
	name, _, _ := strings.Cut(m.String(), ";")
	return Type(name)
}

// IsImage tells whether models take images of this type as they are.
func (t Type) IsImage() bool { return t == PNG || t == JPEG || t == GIF || t == WebP }

// String is the type in words for a message.
func (t Type) String() string {
	if t == "" {
		return "empty"
	}
	return string(t)
}
