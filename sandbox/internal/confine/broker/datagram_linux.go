//go:build amd64 || arm64

package broker

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/broker/datagrams"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/hints"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"golang.org/x/sys/unix"
)

// connectLookup connects a datagram socket: to a server of names, whichever, as this one
// answers, or to another socket of the session.
func (q *Question) connectLookup(l *datagrams.Socket) Answer {
	raw, family, e := q.address()
	switch {
	case e != 0:
		return Fail(e)
	case l.Stream:
		return Fail(unix.EISCONN)
	case l.Domain == unix.AF_UNIX:
		return q.connectUnixDatagram(l, raw)
	case family == unix.AF_UNSPEC:
		l.Connect(nil, netip.AddrPort{}, q.rest)
		return Answer{}
	}
	to, where, e := q.targetOf(l, raw)
	switch {
	case e != 0:
		return Fail(e)
	case where == nowhere || where == atNames && !l.Of.Answers():
		q.tell(to, false)
		return Fail(unix.ENETUNREACH)
	}
	if e := q.bindAny(l); e != 0 {
		return Fail(e)
	}
	if where == atNames {
		l.Connect(raw, netip.AddrPort{}, q.rest)
	} else {
		l.Connect(nil, to, q.rest)
	}
	return Answer{}
}

// A whereabouts is where a datagram leads.
type whereabouts int

const (
	nowhere whereabouts = iota
	atNames             // a server of names
	inside              // loopback, which is the session's own
)

// targetOf judges where the asker would send.
func (q *Question) targetOf(l *datagrams.Socket, raw []byte) (to netip.AddrPort, where whereabouts, e unix.Errno) {
	to, ok := kernel.ParseInet(raw)
	if !ok || to.Addr().Is6() && l.Domain == unix.AF_INET {
		return to, nowhere, unix.EAFNOSUPPORT
	}
	ip := to.Addr().Unmap()
	if ip.IsUnspecified() {
		ip = datagrams.LoopbackLike(ip)
	}
	to = netip.AddrPortFrom(ip, to.Port())
	switch loopback := ip.IsLoopback(); {
	case to.Port() == 0:
		return to, nowhere, unix.EINVAL
	case to.Port() == kernel.NamePort && (!loopback || l.Of.At(to) == nil):
		return to, atNames, 0
	case loopback:
		return to, inside, 0
	}
	return to, nowhere, 0
}

// tell puts on record that a datagram leads nowhere. Programs that have got several
// addresses connect to each, and send nothing, to learn which suits them: that is none.
func (q *Question) tell(to netip.AddrPort, sends bool) {
	gate := q.broker.session.gate
	switch {
	case gate == nil && (sends || to.Port() == kernel.NamePort):
		what := "send UDP to " + to.String()
		if to.Port() == kernel.NamePort {
			what = "look up a name at " + to.String()
		}
		q.refuse(unix.ENETUNREACH, what, hints.PermitNetworkFlag)
	case gate != nil && (sends || !gate.Reached(to.Addr())):
		gate.RefuseDatagram(to)
	}
}

// bindLookup binds to an address of loopback, or any of those, of the session's own.
func (q *Question) bindLookup(l *datagrams.Socket) Answer {
	raw, family, e := q.address()
	if e != 0 {
		return Fail(e)
	}
	if l.Domain == unix.AF_UNIX {
		return q.bindUnixDatagram(l, raw)
	}
	to, ok := kernel.ParseInet(raw)
	if !ok || l.Stream {
		return Fail(unix.EINVAL)
	}
	if family != l.Domain {
		return Fail(unix.EAFNOSUPPORT)
	}
	ip := to.Addr().Unmap()
	switch {
	case !ip.IsUnspecified() && !ip.IsLoopback():
		return q.refuse(unix.EACCES, "receive UDP at "+to.String(), q.permitNetwork())
	case to.Port() != 0 && int(to.Port()) < unprivilegedPort():
		return Fail(unix.EACCES)
	}
	e = l.Of.Bind(l, netip.AddrPortFrom(ip, to.Port()))
	if e == unix.EADDRINUSE { // by one that nobody has any more
		l.Of.Sweep()
		for until := time.Now().Add(time.Second); e == unix.EADDRINUSE && time.Now().Before(until) && l.Of.Leaving(to.Port()); {
			q.rest(func() { time.Sleep(time.Millisecond) })
			e = l.Of.Bind(l, netip.AddrPortFrom(ip, to.Port()))
		}
	}
	return Fail(e)
}

// bindAny gives a socket a port that has none.
func (q *Question) bindAny(l *datagrams.Socket) unix.Errno {
	any := netip.IPv4Unspecified()
	if l.Domain == unix.AF_INET6 {
		any = netip.IPv6Unspecified()
	}
	if e := l.Of.Bind(l, netip.AddrPortFrom(any, 0)); e != unix.EINVAL { // it has one
		return e
	}
	return 0
}

// send sends for the asker, from our own copy of what it has and of the address; without
// one, to whom the socket is connected.
func (q *Question) send(l *datagrams.Socket, data, raw []byte, flags int) unix.Errno {
	if len(data) > datagrams.MaxUDP {
		return unix.EMSGSIZE
	}
	if l.Domain == unix.AF_UNIX {
		return q.sendUnixDatagram(l, data, raw, flags)
	}
	if raw == nil {
		if raw = l.Asked(); raw == nil {
			peer := l.Connected()
			if !peer.IsValid() {
				return unix.EDESTADDRREQ
			}
			l.Forward(peer, data)
			return 0
		}
	}
	to, where, e := q.targetOf(l, raw)
	if e != 0 {
		return e
	}
	if where == nowhere || where == atNames && !l.Of.Answers() {
		q.tell(to, true)
	}
	if where == nowhere {
		return unix.ENETUNREACH
	}
	if e := q.bindAny(l); e != 0 {
		return e
	}
	if where == inside {
		l.Forward(to, data)
		return 0
	}
	q.rest(func() { l.Ask(data, raw) })
	return 0
}

// sendTo comes here with an address.
func (q *Question) sendTo() Answer {
	l := q.lookupOf(q.Arg(0))
	if l == nil || l.Stream {
		return Answer{Run: true}
	}
	raw, family, e := q.addressAt(q.args[4], q.Arg(5))
	switch {
	case e != 0:
		return Fail(e)
	case family == unix.AF_UNSPEC:
		return Fail(unix.EAFNOSUPPORT)
	}
	data, e := q.gather(envelope{data: []piece{{q.args[1], q.args[2]}}})
	if e == 0 {
		e = q.send(l, data, raw, q.Arg(3))
	}
	return Answer{val: int64(len(data)), err: e}
}

// sendMessage and sendMessages are sendTo for sendmsg(2) and sendmmsg(2), whose addresses
// are out of the filter's sight.
func (q *Question) sendMessage() Answer {
	l := q.lookupOf(q.Arg(0))
	if l == nil || l.Stream {
		return Answer{Run: true}
	}
	n, e := q.sendEnvelope(l, q.args[1], q.Arg(2))
	return Answer{val: int64(n), err: e}
}

func (q *Question) sendMessages() Answer {
	l := q.lookupOf(q.Arg(0))
	if l == nil || l.Stream {
		return Answer{Run: true}
	}
	var sent uint64
	for ; sent < min(q.args[2]&0xffffffff, maxMessages); sent++ {
		at := q.args[1] + sent*messagesStep
		n, e := q.sendEnvelope(l, at, q.Arg(3))
		if e != 0 {
			if sent == 0 {
				return Fail(e)
			}
			break
		}
		if !q.writeAll([]patch{number32(at+headSize, n)}) {
			return Fail(unix.EFAULT)
		}
	}
	return Answer{val: int64(sent)}
}

func (q *Question) sendEnvelope(l *datagrams.Socket, at uint64, flags int) (n int, e unix.Errno) {
	env, e := q.envelopeAt(at)
	if e != 0 {
		return 0, e
	}
	if l.Domain == unix.AF_UNIX && env.control > 0 {
		return 0, q.refuse(unix.EOPNOTSUPP, "pass descriptors or credentials by a Unix datagram socket", hints.PermitNamespacesFlag).err
	}
	var raw []byte
	if env.name != 0 && env.room > 0 {
		if raw, _, e = q.addressAt(env.name, int(env.room)); e != 0 {
			return 0, e
		}
	}
	data, e := q.gather(env)
	if e != 0 {
		return 0, e
	}
	return len(data), q.send(l, data, raw, flags)
}

// receiveFrom comes here with room for an address.
func (q *Question) receiveFrom() Answer {
	l := q.lookupOf(q.Arg(0))
	if l == nil || l.Stream {
		return Answer{Run: true}
	}
	var room [4]byte
	if !q.read(q.args[5], room[:]) {
		return Fail(unix.EFAULT)
	}
	env := envelope{name: q.args[4], room: binary.NativeEndian.Uint32(room[:]), data: []piece{{q.args[1], q.args[2]}}}
	got, e := q.receive(l, env, q.Arg(3), true)
	if e == 0 && !q.writeAll(append(got.patches(env), number32(q.args[5], len(got.from)))) {
		e = unix.EFAULT
	}
	return Answer{val: int64(got.value(q.Arg(3))), err: e}
}

// receiveMessage and receiveMessages are receiveFrom for recvmsg(2) and recvmmsg(2).
func (q *Question) receiveMessage() Answer {
	l := q.lookupOf(q.Arg(0))
	if l == nil || l.Stream {
		return Answer{Run: true}
	}
	env, got, e := q.receiveEnvelope(l, q.args[1], q.Arg(2), true)
	if e == 0 && !q.writeAll(got.patches(env)) {
		e = unix.EFAULT
	}
	return Answer{val: int64(got.value(q.Arg(2))), err: e}
}

func (q *Question) receiveMessages() Answer {
	l := q.lookupOf(q.Arg(0))
	if l == nil || l.Stream {
		return Answer{Run: true}
	}
	var count uint64
	for ; count < min(q.args[2]&0xffffffff, maxMessages); count++ {
		at := q.args[1] + count*messagesStep
		env, got, e := q.receiveEnvelope(l, at, q.Arg(3), count == 0) // what else is there, without waiting
		if e == 0 && !q.writeAll(append(got.patches(env), number32(at+headSize, got.value(q.Arg(3))))) {
			e = unix.EFAULT
		}
		if e != 0 {
			if count == 0 {
				return Fail(e)
			}
			break
		}
	}
	return Answer{val: int64(count)}
}

func (q *Question) receiveEnvelope(l *datagrams.Socket, at uint64, flags int, wait bool) (env envelope, got received, e unix.Errno) {
	if env, e = q.envelopeAt(at); e == 0 {
		got, e = q.receive(l, env, flags, wait)
	}
	return env, got, e
}

// A received datagram.
type received struct {
	size int    // of all of it
	data []byte // as much as fits
	from []byte
}

func (r received) value(flags int) int {
	if flags&unix.MSG_TRUNC != 0 {
		return r.size
	}
	return len(r.data)
}

// patches are what the asker finds in its memory then.
func (r received) patches(env envelope) []patch {
	list := env.scatter(r.data)
	if env.name != 0 {
		list = append(list, patch{env.name, r.from[:min(len(r.from), int(env.room))]})
	}
	if env.head == 0 {
		return list
	}
	const nameLengthAt, controlLengthAt, flagsAt = 8, 40, 48
	truncated := 0
	if r.size > len(r.data) {
		truncated = unix.MSG_TRUNC
	}
	if env.name != 0 {
		list = append(list, number32(env.head+nameLengthAt, len(r.from)))
	}
	return append(list, patch{env.head + controlLengthAt, make([]byte, 8)}, // no control data came along
		number32(env.head+flagsAt, truncated))
}

// receive receives for the asker, which waits as long as its socket says.
func (q *Question) receive(l *datagrams.Socket, env envelope, flags int, wait bool) (got received, e unix.Errno) {
	if flags&unix.MSG_ERRQUEUE != 0 {
		return got, unix.EAGAIN // nothing tells of errors
	}
	buf := make([]byte, min(env.size(), datagrams.MaxUDP))
	for began := time.Now(); ; {
		left, e := q.receiveNow(l, buf, flags, &got)
		if e != unix.EAGAIN || !wait {
			return got, e
		}
		if left -= time.Since(began); left <= 0 {
			return got, e
		}
		if e := q.awaitDatagram(l.Arrived, left); e != 0 {
			return got, e
		}
	}
}

// receiveNow receives what is there. Where nothing is, it says how long the asker would
// wait in all.
func (q *Question) receiveNow(l *datagrams.Socket, buf []byte, flags int, got *received) (limit time.Duration, e unix.Errno) {
	end, e := q.endOf(l)
	if e != 0 {
		return 0, e
	}
	defer unix.Close(end)
	size, from, err := l.Receive(end, buf, flags)
	if err == nil {
		*got = received{size: size, data: buf[:min(size, len(buf))], from: from}
		return 0, 0
	}
	return waitsFor(end, flags, unix.SO_RCVTIMEO), kernel.AsErrno(err)
}

// awaitDatagram waits a moment for one, or for room for one, without a descriptor.
func (q *Question) awaitDatagram(arrived <-chan struct{}, left time.Duration) unix.Errno {
	if e := q.interruption(); e != 0 {
		return e
	}
	c := q.broker.session
	select {
	case c.Receives <- struct{}{}:
		defer func() { <-c.Receives }()
		q.rest(func() {
			select {
			case <-arrived:
			case <-time.After(min(left, lookAgain)):
			}
		})
		return 0
	default: // too many wait: it has to ask again
		q.rest(func() { time.Sleep(lookAgain) })
		return unix.EINTR
	}
}

// WaitingReceives bounds the receives of one session that wait.
const WaitingReceives = 48

// endOf duplicates the asker's end of a datagram socket.
func (q *Question) endOf(l *datagrams.Socket) (end int, e unix.Errno) {
	if q.broker.session.Kernel.GetFD {
		if end, e = q.duplicate(q.Arg(0)); e != 0 {
			return -1, e
		}
		var st unix.Stat_t
		if unix.Fstat(end, &st) != nil || st.Ino != l.Ino { // another by now
			unix.Close(end)
			return -1, unix.EBADF
		}
		return end, 0
	}
	return l.Duplicate()
}
