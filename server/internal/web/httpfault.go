package web

import (
	"net/http"
	"strconv"

	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
)

// An httpFault is a request that gets an HTTP status and a JSON-RPC error instead
// of an answer.
type httpFault struct {
	status int
	id     []byte // of the request, nil for null
	err    *jsonrpc.Error
}

// refuse makes an httpFault that names no request.
func refuse(status int, text string) *httpFault {
	return &httpFault{status: status, err: jsonrpc.InvalidRequest(text)}
}

func (f *httpFault) write(w http.ResponseWriter) {
	writeJSON(w, f.status, jsonrpc.EncodeError(f.id, f.err))
}

// writeJSON writes one whole answer.
func writeJSON(w http.ResponseWriter, status int, line []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(line)))
	limitWrite(http.NewResponseController(w))
	w.WriteHeader(status)
	_, _ = w.Write(line) // the client is gone when this fails, which ends its calls
}
