//go:build amd64 || arm64

package confine

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A UDP socket sends wherever each message says, in memory that a command can change
// after the broker has looked. So where a gate answers questions for names, a command
// gets in its place one end of a pair of Unix sockets that keep messages apart: the
// kernel ignores the addresses of what is sent by these, and the server reads it all.

// lookupOf returns what a descriptor of the asker is a socket for names of, or nil.
func (q *question) lookupOf(fd int) *lookup {
	ls := q.broker.domain.confiner.lookups
	if ls == nil || ls.none() {
		return nil
	}
	link, err := os.Readlink(q.inProc("fd/%d", fd))
	if err != nil || !q.valid() {
		return nil
	}
	var ino uint64
	if _, err := fmt.Sscanf(link, "socket:[%d]", &ino); err != nil {
		return nil
	}
	return ls.find(ino)
}

// openLookup makes a socket for names; of the flags some are the descriptor's.
func (q *question) openLookup(domain, flags int) answer {
	theirs, e := q.lookupEnd(unix.SOCK_SEQPACKET, domain, nil)
	if e != 0 {
		return fail(e)
	}
	defer unix.Close(theirs)
	_ = unix.SetNonblock(theirs, flags&unix.SOCK_NONBLOCK != 0)
	return q.give(theirs, flags&unix.SOCK_CLOEXEC)
}

// lookupEnd makes the end that the asker gets, when a few more have been closed
// where there are too many.
func (q *question) lookupEnd(kind, domain int, server []byte) (theirs int, e unix.Errno) {
	ls := q.broker.domain.confiner.lookups
	had := ls.take()
	if !had {
		q.rest(func() {
			for until := time.Now().Add(time.Second); !had && ls.ctx.Err() == nil && time.Now().Before(until); had = ls.take() {
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	if !had {
		return -1, unix.EMFILE
	}
	theirs, err := ls.open(kind, domain, server)
	if err != nil {
		ls.give()
		return -1, failed(err).err
	}
	return theirs, 0
}

// connectLookup connects a socket for names to a server of names, whichever: this one
// answers. What else UDP is for, there is not.
func (q *question) connectLookup(l *lookup) answer {
	raw, family, e := q.address()
	switch {
	case e != 0:
		return fail(e)
	case l.stream:
		return fail(unix.EISCONN)
	case family == unix.AF_UNSPEC:
		l.asks(nil)
		return answer{}
	}
	return q.datagramTo(l, raw)
}

// datagramTo judges where the asker would send.
func (q *question) datagramTo(l *lookup, raw []byte) answer {
	to, ok := parseInet(raw)
	if !ok {
		return fail(unix.EAFNOSUPPORT)
	}
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	if to.Port() == namePort {
		l.asks(raw)
		return answer{}
	}
	// Programs that have got several addresses connect to each, and send nothing, to
	// learn which suits them.
	gate := q.broker.domain.confiner.gate
	if ip := to.Addr(); to.Port() != 0 && !ip.IsLoopback() && !ip.IsUnspecified() && !gate.Reached(ip) {
		gate.RefuseDatagram(to)
	}
	return fail(unix.ENETUNREACH)
}

// bindLookup has nothing to do where programs want any address, and refuses others.
func (q *question) bindLookup() answer {
	raw, _, e := q.address()
	if e != 0 {
		return fail(e)
	}
	to, ok := parseInet(raw)
	if !ok {
		return fail(unix.EINVAL)
	}
	if to.Port() == 0 && to.Addr().Unmap().IsUnspecified() {
		return answer{}
	}
	return q.refuse(unix.EACCES, "receive UDP at "+to.String(), "")
}

// sendTo comes here with an address. The kernel ignores it on every socket that a
// command has: it is for the error, and for the answer's sender.
func (q *question) sendTo() answer {
	l := q.lookupOf(q.arg(0))
	if l == nil || l.stream {
		return answer{run: true}
	}
	raw, family, e := q.addressAt(q.args[4], q.arg(5))
	if e != 0 || family == unix.AF_UNSPEC {
		return answer{run: true}
	}
	a := q.datagramTo(l, raw)
	if a.err == unix.ENETUNREACH { // nobody sends to find an address
		if to, _ := parseInet(raw); q.broker.domain.confiner.gate.Reached(to.Addr().Unmap()) {
			q.broker.domain.confiner.gate.RefuseDatagram(netip.AddrPortFrom(to.Addr().Unmap(), to.Port()))
		}
	}
	a.run = a.err == 0
	return a
}

// receiveFrom comes here with room for an address, where the kernel will write none
// for a socket for names. Programs that compare it find the server that they asked.
func (q *question) receiveFrom() answer {
	var room [4]byte
	if l := q.lookupOf(q.arg(0)); l != nil && q.read(q.args[5], room[:]) {
		q.sender(l, q.args[4], binary.NativeEndian.Uint32(room[:]))
	}
	return answer{run: true}
}

// receiveMessage is receiveFrom for recvmsg(2), whose address is out of the filter's sight.
func (q *question) receiveMessage() answer {
	var head [12]byte // of struct msghdr: msg_name and msg_namelen
	if l := q.lookupOf(q.arg(0)); l != nil && q.read(q.args[1], head[:]) {
		q.sender(l, binary.NativeEndian.Uint64(head[:]), binary.NativeEndian.Uint32(head[8:]))
	}
	return answer{run: true}
}

func (q *question) sender(l *lookup, to uint64, room uint32) {
	if from := l.asked(); from != nil && to != 0 {
		q.write(to, from[:min(uint32(len(from)), room)])
	}
}

// ownName and peerName answer for a socket for names as one of the network would:
// programs that know only those stop at another family.
func (q *question) ownName() answer {
	if l := q.lookupOf(q.arg(0)); l != nil {
		return q.named(inetAddress(l.domain, l.at()))
	}
	q.bindAtLast()
	return answer{run: true}
}

func (q *question) peerName() answer {
	if l := q.lookupOf(q.arg(0)); l != nil {
		server := l.asked()
		if server == nil {
			return fail(unix.ENOTCONN)
		}
		return q.named(server)
	}
	return answer{run: true}
}

// named gives the asker an address, as far as it has room.
func (q *question) named(raw []byte) answer {
	var room [4]byte
	if !q.read(q.args[2], room[:]) {
		return fail(unix.EFAULT)
	}
	has := int32(binary.NativeEndian.Uint32(room[:]))
	if has < 0 {
		return fail(unix.EINVAL)
	}
	binary.NativeEndian.PutUint32(room[:], uint32(len(raw)))
	if !q.write(q.args[1], raw[:min(len(raw), int(has))]) || !q.write(q.args[2], room[:]) {
		return fail(unix.EFAULT)
	}
	return answer{}
}

// write changes the asker's memory: that of the process which asked, should another
// have its id by then, which rules process_vm_writev(2) out. The file overrides that
// memory can only be read, so that is looked up.
func (q *question) write(to uint64, b []byte) bool {
	mem, err := unix.Open(q.inProc("mem"), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(mem)
	maps, err := os.Open(q.inProc("maps"))
	if err != nil {
		return false
	}
	defer maps.Close()
	if !q.valid() || len(b) > 0 && isReadOnly(maps, to, to+uint64(len(b))) {
		return false
	}
	n, err := unix.Pwrite(mem, b, int64(to))
	return err == nil && n == len(b)
}

// isReadOnly reports whether something in a range of memory is mapped, and not to be
// written.
func isReadOnly(maps io.Reader, from, to uint64) bool {
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		var first, end uint64
		var rights string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &first, &end, &rights); err != nil {
			return true
		}
		if first >= to {
			return false
		}
		if end > from && !strings.Contains(rights, "w") {
			return true
		}
	}
	return lines.Err() != nil
}
