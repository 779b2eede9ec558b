package server

import (
	"bytes"
	"net/http"
	"strconv"
)

// An httpFault is a request that gets an HTTP status and a JSON-RPC error instead
// of an answer.
type httpFault struct {
	status int
	id     []byte // of the request, nil for null
	err    *rpcError
}

// refuse makes an httpFault that names no request.
func refuse(status int, text string) *httpFault {
	return &httpFault{status: status, err: invalidRequest(text)}
}

func (f *httpFault) write(w http.ResponseWriter) {
	buf := buffers.Get().(*bytes.Buffer)
	defer recycle(buf)
	encodeError(buf, f.id, f.err)
	writeJSON(w, f.status, buf.Bytes())
}

// writeJSON writes one whole answer.
func writeJSON(w http.ResponseWriter, status int, line []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(line)))
	limitWrite(http.NewResponseController(w))
	w.WriteHeader(status)
	_, _ = w.Write(line) // the client is gone when this fails, which ends its calls
}
