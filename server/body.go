package server

import (
	"bytes"
	"io"
	"net/http"
)

// drainBytes is how much of a message that is refused is read and dropped: a
// client that is still sending would not see the answer.
const drainBytes = 4 * maxMessage

func drain(r *http.Request) { _, _ = io.CopyN(io.Discard, r.Body, drainBytes) }

// readAll reads a body of the announced size, -1 when it was not announced.
func readAll(body io.Reader, size int64) ([]byte, error) {
	var b bytes.Buffer
	if size > 0 {
		b.Grow(int(min(size, pooledBytes)) + bytes.MinRead)
	}
	_, err := b.ReadFrom(body)
	return b.Bytes(), err
}
