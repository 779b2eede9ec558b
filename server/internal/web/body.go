package web

import (
	"bytes"
	"io"
	"net/http"

	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
)

// drainBytes is how much of a message that is refused is read and dropped: a
// client that is still sending would not see the answer.
const drainBytes = 4 * jsonrpc.MaxMessage

func drain(r *http.Request) { _, _ = io.CopyN(io.Discard, r.Body, drainBytes) }

// initialBytes bounds the memory that a body gets for its announced size before it
// has arrived.
const initialBytes = 64 << 10

// readAll reads a body of the announced size, -1 when it was not announced.
func readAll(body io.Reader, size int64) ([]byte, error) {
	var b bytes.Buffer
	if size > 0 {
		b.Grow(int(min(size, initialBytes)) + bytes.MinRead)
	}
	_, err := b.ReadFrom(body)
	return b.Bytes(), err
}
