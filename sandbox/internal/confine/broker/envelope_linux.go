//go:build amd64 || arm64

package broker

import (
	"encoding/binary"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/broker/datagrams"
	"golang.org/x/sys/unix"
)

// An envelope is where in its memory a command has a message that it sends, or wants one
// that it receives: what sendmsg(2) calls struct msghdr.
type envelope struct {
	head uint64 // of the struct, 0 for none
	name uint64 // of the address, 0 for none
	room uint32 // for it
	data []piece

	control uint64 // bytes that are not of the message: descriptors, credentials
}

type piece struct{ at, size uint64 }

const (
	headSize     = 56 // bytes of a struct msghdr
	messagesStep = 64 // from one struct mmsghdr to the next
	maxMessages  = 64 // of one call; a program asks again for the rest
	MaxPieces    = 1024
	pieceSize    = 16 // bytes of a struct iovec
)

// envelopeAt reads one.
func (q *Question) envelopeAt(at uint64) (e envelope, errno unix.Errno) {
	var head [headSize]byte
	if !q.read(at, head[:]) {
		return e, unix.EFAULT
	}
	word := func(i int) uint64 { return binary.NativeEndian.Uint64(head[i:]) }
	e.head, e.name, e.room, e.control = at, word(0), binary.NativeEndian.Uint32(head[8:]), word(40)
	if int32(e.room) < 0 {
		return e, unix.EINVAL
	}
	pieces, count := word(16), word(24)
	if count > MaxPieces {
		return e, unix.EMSGSIZE
	}
	if count == 0 {
		return e, 0
	}
	list := make([]byte, count*pieceSize)
	if !q.read(pieces, list) {
		return e, unix.EFAULT
	}
	for ; len(list) > 0; list = list[pieceSize:] {
		e.data = append(e.data, piece{binary.NativeEndian.Uint64(list), binary.NativeEndian.Uint64(list[8:])})
	}
	return e, 0
}

// size is what fits, as far as it matters for a datagram.
func (e envelope) size() (n int) {
	for _, s := range e.data {
		n += int(min(s.size, datagrams.MaxUDP+1))
	}
	return n
}

// gather copies what the asker sends.
func (q *Question) gather(e envelope) ([]byte, unix.Errno) {
	if e.size() > datagrams.MaxUDP {
		return nil, unix.EMSGSIZE
	}
	var all []byte
	for _, s := range e.data {
		if s.size == 0 {
			continue
		}
		part := make([]byte, s.size)
		if !q.read(s.at, part) {
			return nil, unix.EFAULT
		}
		all = append(all, part...)
	}
	return all, 0
}

// scatter says where the asker wants what.
func (e envelope) scatter(b []byte) (list []patch) {
	for _, s := range e.data {
		n := int(min(s.size, uint64(len(b))))
		if n > 0 {
			list = append(list, patch{s.at, b[:n]})
		}
		b = b[n:]
	}
	return list
}
