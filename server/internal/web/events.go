package web

import (
	"bytes"
	"net/http"
	"time"
)

// events writes server-sent events. One goroutine at a time.
type events struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

// openEvents begins an event stream.
func openEvents(w http.ResponseWriter) *events {
	e := &events{w: w, rc: http.NewResponseController(w)}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	limitWrite(e.rc)
	w.WriteHeader(http.StatusOK)
	return e
}

// send writes one event with one line of data, at once.
func (e *events) send(name string, line []byte) error {
	var buf bytes.Buffer
	buf.WriteString("event: " + name + "\ndata: ")
	buf.Write(bytes.TrimRight(line, "\n"))
	buf.WriteString("\n\n")
	return e.write(buf.Bytes())
}

// alive writes a comment, so that no proxy takes the stream for dead.
func (e *events) alive() error { return e.write([]byte(": alive\n\n")) }

func (e *events) write(text []byte) error {
	limitWrite(e.rc)
	if _, err := e.w.Write(text); err != nil {
		return err
	}
	return e.rc.Flush()
}

// limitWrite gives the next write its time: a client that reads nothing must not
// hold a call for ever.
func limitWrite(rc *http.ResponseController) { _ = rc.SetWriteDeadline(time.Now().Add(writeTime)) }
