//go:build amd64 || arm64

package datagrams

import (
	"context"
	"encoding/binary"
	"io"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/network"
)

// Names answer questions for names: see package network.
type Names interface {
	Answer(ctx context.Context, query []byte, size int) []byte
}

// Answers reports whether names have addresses.
func (ls *Sockets) Answers() bool { return ls.names != nil }

// Ask has a question answered that the command has sent with the address of the server
// that it asks; where too many wait it is lost, as at a server that is overloaded.
func (l *Socket) Ask(query, server []byte) {
	select {
	case l.Of.busy <- struct{}{}:
		l.answerLater(query, server)
	case <-time.After(time.Second):
	}
}

// answerLater answers a question beside others; the caller has taken a place for it.
// What is no question gets no answer, as of a server of names.
func (l *Socket) answerLater(query, server []byte) {
	done := func() { <-l.Of.busy }
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over || len(query) == 0 || len(query) > MaxQuery {
		done()
		return
	}
	l.work.Go(func() {
		defer done()
		if reply := l.answer(query, maxDatagram); reply != nil {
			l.deliver(datagram{from: server, data: reply})
		}
	})
}

// serveStream answers one question after the other, each with its length before it.
func (l *Socket) serveStream() {
	for {
		var size [2]byte
		if _, err := io.ReadFull(l, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if len(query) > MaxQuery {
			return
		}
		if _, err := io.ReadFull(l, query); err != nil {
			return
		}
		l.Of.busy <- struct{}{}
		reply := l.answer(query, 0)
		if reply != nil {
			reply = append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)
		}
		ok := l.write(reply)
		<-l.Of.busy
		if !ok {
			return
		}
	}
}

// answer returns nil for what is no question.
func (l *Socket) answer(query []byte, size int) []byte {
	ctx, cancel := context.WithTimeout(l.Of.ctx, answerWithin)
	defer cancel()
	if !l.Of.Answers() {
		return network.AnswerNone(query, size)
	}
	reply := l.Of.names.Answer(ctx, query, size)
	if len(reply) > 1<<16-1 {
		return nil
	}
	return reply
}

// write fails for no answer, and when the command does not take it.
func (l *Socket) write(reply []byte) bool {
	if reply == nil || l.file.SetWriteDeadline(time.Now().Add(writeWithin)) != nil {
		return false
	}
	_, err := l.file.Write(reply)
	return err == nil
}
