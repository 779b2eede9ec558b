//go:build amd64 || arm64

package gateway

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	nameTime     = 30 * time.Second // for an answer
	nameIdle     = 10 * time.Second // for the next question of a connection
	plainAnswer  = 512              // the most that who says nothing takes by UDP
	largestNames = 4096             // question or answer by UDP
)

// answerDatagrams answers questions for names that come by UDP, from the address that
// was asked.
func (g *Gateway) answerDatagrams() {
	question, about := make([]byte, largestNames), make([]byte, 256)
	for {
		n, more, _, from, err := g.names.ReadMsgUDPAddrPort(question, about)
		if err != nil {
			if g.ctx.Err() != nil || !g.pause(time.Millisecond) {
				return
			}
			continue
		}
		asked, ok := askedAddress(about[:more])
		if !ok {
			continue
		}
		size := answerSize(question[:n])
		if answer, ok := g.gate.AnswerNow(question[:n], size); ok {
			g.answerDatagram(answer, asked, from)
			continue
		}
		select {
		case g.asks <- struct{}{}:
		default: // who gets no answer asks again
			continue
		}
		query := append([]byte(nil), question[:n]...)
		g.work.Go(func() {
			defer func() { <-g.asks }()
			ctx, cancel := context.WithTimeout(g.ctx, nameTime)
			defer cancel()
			g.answerDatagram(g.gate.Answer(ctx, query, size), asked, from)
		})
	}
}

func (g *Gateway) answerDatagram(answer []byte, asked netip.Addr, to netip.AddrPort) {
	if answer != nil {
		_, _, _ = g.names.WriteMsgUDPAddrPort(answer, g.fromAddress(asked), to)
	}
}

// askedAddress is the address that a datagram was sent to.
func askedAddress(about []byte) (netip.Addr, bool) {
	messages, _ := unix.ParseSocketControlMessage(about)
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_PKTINFO && len(m.Data) >= unix.SizeofInet6Pktinfo:
			return netip.AddrFrom16([16]byte(m.Data[:16])).Unmap(), true
		case m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_PKTINFO && len(m.Data) >= unix.SizeofInet4Pktinfo:
			return netip.AddrFrom4([4]byte(m.Data[8:12])), true
		}
	}
	return netip.Addr{}, false
}

// fromAddress says that a datagram comes from an address.
func (g *Gateway) fromAddress(a netip.Addr) []byte {
	if g.families > 1 {
		return controlMessage(unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, unix.Inet6Pktinfo{Addr: a.As16()})
	}
	return controlMessage(unix.IPPROTO_IP, unix.IP_PKTINFO, unix.Inet4Pktinfo{Spec_dst: a.As4()})
}

func controlMessage[T any](level, kind int32, value T) []byte {
	size := int(unsafe.Sizeof(value))
	b := make([]byte, unix.CmsgSpace(size))
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	h.Level, h.Type = level, kind
	h.SetLen(unix.CmsgLen(size))
	_, _ = binary.Encode(b[unix.CmsgLen(0):], binary.NativeEndian, value)
	return b
}

// answerStream answers questions for names that come by TCP, each after its size.
func (g *Gateway) answerStream(conn *net.TCPConn) {
	for {
		g.waits(conn, true)
		_ = conn.SetDeadline(time.Now().Add(nameIdle))
		size := make([]byte, 2)
		if _, err := io.ReadFull(conn, size); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		g.waits(conn, false)
		ctx, cancel := context.WithTimeout(g.ctx, nameTime)
		answer := g.gate.Answer(ctx, query, 0)
		cancel()
		if answer == nil || len(answer) > 0xffff {
			return
		}
		_ = conn.SetDeadline(time.Now().Add(nameIdle))
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

// answerSize is how many bytes who asks by UDP takes, which is said in a record of the
// type OPT.
func answerSize(query []byte) int {
	const header, questionEnd, recordEnd, opt = 12, 4, 10, 41
	if len(query) < header {
		return plainAnswer
	}
	count := func(at int) int { return int(binary.BigEndian.Uint16(query[at:])) }
	rest := query[header:]
	skip := func(n int) bool {
		if len(rest) < n {
			return false
		}
		rest = rest[n:]
		return true
	}
	for range count(4) {
		if !skipName(&rest) || !skip(questionEnd) {
			return plainAnswer
		}
	}
	for range count(6) + count(8) + count(10) {
		if !skipName(&rest) || len(rest) < recordEnd {
			return plainAnswer
		}
		if binary.BigEndian.Uint16(rest) == opt {
			return min(max(int(binary.BigEndian.Uint16(rest[2:])), plainAnswer), largestNames)
		}
		if !skip(recordEnd + int(binary.BigEndian.Uint16(rest[8:]))) {
			return plainAnswer
		}
	}
	return plainAnswer
}

// skipName goes on behind a name.
func skipName(rest *[]byte) bool {
	for b := *rest; len(b) > 0; {
		switch n := int(b[0]); {
		case n == 0:
			*rest = b[1:]
			return true
		case n >= 0xc0: // the rest of it is elsewhere
			*rest = b[min(2, len(b)):]
			return len(b) > 1
		case len(b) < 1+n:
			return false
		default:
			b = b[1+n:]
		}
	}
	return false
}
