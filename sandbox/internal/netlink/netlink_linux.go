package netlink

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// A Socket is one by which the kernel is asked and told how a network namespace is laid
// out: that in which the socket was made, wherever who uses it is.
type Socket int

// Open makes one for the namespace of the calling thread. The kernel answers at once; a
// second is for when it does not.
func Open() (Socket, error) {
	sock, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return -1, fmt.Errorf("a netlink socket: %w", err)
	}
	wait := unix.Timeval{Sec: 1}
	if err := unix.SetsockoptTimeval(sock, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		unix.Close(sock)
		return -1, fmt.Errorf("a time limit for a netlink socket: %w", err)
	}
	return Socket(sock), nil
}

// A Message is a request to the kernel being written: a header, a fixed part and
// attributes.
type Message struct{ bytes.Buffer }

// NewMessage begins a request, of which the kernel says how it went. fixed has a fixed size.
func NewMessage(kind, flags uint16, fixed any) *Message {
	m := new(Message)
	m.Put(unix.NlMsghdr{Type: kind, Flags: flags | unix.NLM_F_REQUEST | unix.NLM_F_ACK})
	m.Put(fixed)
	return m
}

// Put appends a value of fixed size as it is.
func (m *Message) Put(v any) { _ = binary.Write(m, binary.NativeEndian, v) } // a buffer takes all that has a size

// Attr appends an attribute, whose value is one of fixed size.
func (m *Message) Attr(kind uint16, value any) *Message {
	return m.Nest(kind, func() { m.Put(value) })
}

// Name appends an attribute that is text.
func (m *Message) Name(kind uint16, text string) *Message {
	return m.Attr(kind, append([]byte(text), 0))
}

// Nest appends an attribute that holds what f appends.
func (m *Message) Nest(kind uint16, f func()) *Message {
	at := m.Len()
	m.Put(unix.RtAttr{Type: kind})
	f()
	binary.NativeEndian.PutUint16(m.Bytes()[at:], uint16(m.Len()-at))
	for m.Len()%unix.NLMSG_ALIGNTO != 0 {
		m.WriteByte(0)
	}
	return m
}

// Ask sends a request and returns what the kernel answers: an [unix.Errno], as a rule.
func (s Socket) Ask(m *Message) error {
	answer, err := s.exchange(m)
	if err != nil {
		return err
	}
	return failureOf(answer)
}

// exchange sends a request and returns the first message of the answer.
func (s Socket) exchange(m *Message) ([]byte, error) {
	binary.NativeEndian.PutUint32(m.Bytes(), uint32(m.Len()))
	for {
		err := unix.Sendto(int(s), m.Bytes(), 0, &unix.SockaddrNetlink{})
		if err == nil {
			break
		}
		if err != unix.EINTR {
			return nil, err
		}
	}
	answer := make([]byte, 4096)
	for {
		n, _, err := unix.Recvfrom(int(s), answer, 0)
		if err != unix.EINTR {
			return answer[:max(n, 0)], err
		}
	}
}

// failureOf reads how a request went.
func failureOf(answer []byte) error {
	if len(answer) < unix.SizeofNlMsghdr+4 || binary.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return unix.EBADMSG
	}
	if e := unix.Errno(-int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:]))); e != 0 {
		return e
	}
	return nil
}

// RouteKind asks the kernel for the type of the route that leads to an address, as
// RTN_LOCAL: by the interface of that number, or by any for 0. It returns the kernel's
// error where there is no route.
func RouteKind(to netip.Addr, link uint32) (kind uint8, err error) {
	sock, err := Open()
	if err != nil {
		return 0, err
	}
	defer unix.Close(int(sock))
	m := NewMessage(unix.RTM_GETROUTE, 0, unix.RtMsg{Family: Family(to), Dst_len: uint8(to.BitLen())}).Attr(unix.RTA_DST, to.AsSlice())
	if link != 0 {
		m.Attr(unix.RTA_OIF, link)
	}
	answer, err := sock.exchange(m)
	switch {
	case err != nil:
		return 0, err
	case len(answer) < unix.SizeofNlMsghdr:
		return 0, errors.New("the kernel's answer is short")
	case binary.NativeEndian.Uint16(answer[4:]) != unix.RTM_NEWROUTE || len(answer) < unix.SizeofNlMsghdr+unix.SizeofRtMsg:
		if err := failureOf(answer); err != nil {
			return 0, err
		}
		return 0, unix.EBADMSG // no route, and no reason
	}
	const kindAt = 7 // rtm_type
	return answer[unix.SizeofNlMsghdr+kindAt], nil
}

// Family is that of an address.
func Family(a netip.Addr) uint8 {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}
