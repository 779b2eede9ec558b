//go:build amd64 || arm64

package broker

import (
	"cmp"
	"encoding/binary"
	"math"
	"path/filepath"
	"strconv"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/broker/datagrams"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/hints"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
	"golang.org/x/sys/unix"
)

// maxUnixPath is how long the path of a Unix socket may be.
const maxUnixPath = 108

// unixPath is the path in an address.
func (q *Question) unixPath(raw []byte, verb string) (string, Answer) {
	name := raw[2:]
	switch {
	case binary.NativeEndian.Uint16(raw) != unix.AF_UNIX || len(name) == 0 || len(name) > maxUnixPath:
		return "", Fail(unix.EINVAL)
	case name[0] == 0:
		return "", q.refuse(unix.ECONNREFUSED, verb+" the abstract datagram socket @"+cString(name[1:]), hints.PermitNamespacesFlag)
	}
	return cString(name), Answer{}
}

// bindUnixDatagram gives a datagram socket its name. The file is made in the directory as
// it was opened, so nothing can lead elsewhere after it was judged. Landlock, which would
// ask for the right to make sockets there, is not asked about what the broker makes.
func (q *Question) bindUnixDatagram(l *datagrams.Socket, raw []byte) Answer {
	path, a := q.unixPath(raw, "bind to")
	if a.err != 0 {
		return a
	}
	parent, base := filepath.Split(path) // as it is: ".." leads up from where a link has led
	if base == "" || base == "." || base == ".." {
		return Fail(unix.EADDRINUSE) // it is a directory
	}
	dir := q.opened(q.openPath(unix.AT_FDCWD, cmp.Or(parent, "."), true))
	if c := q.broker.session; dir.e == 0 && c.writable(filepath.Join(dir.path, base)) && !policy.Below(dir.path, c.free) {
		unix.Close(dir.fd)
		return Fail(unix.EACCES)
	}
	return q.change(object{fd: dir.fd, path: filepath.Join(dir.path, base), e: dir.e}, "make the socket", func() error {
		e := l.Of.BindUnix(l, unixAddress(path), func() (policy.FileID, unix.Errno) { return q.makeSocket(dir.fd, base) })
		if e != 0 {
			return e
		}
		return nil
	})
}

// makeSocket makes a socket's file as the kernel would for the asker.
func (q *Question) makeSocket(dir int, base string) (id policy.FileID, e unix.Errno) {
	mask, err := strconv.ParseUint(proc.StatusField(int(q.tid), "Umask"), 8, 32)
	if err != nil || !q.valid() {
		return id, unix.ESRCH
	}
	mode := uint32(0o777 &^ mask)
	if err := unix.Mknodat(dir, base, unix.S_IFSOCK|mode, 0); err == unix.EEXIST {
		return id, unix.EADDRINUSE
	} else if err != nil {
		return id, kernel.AsErrno(err)
	}
	fd, err := unix.Openat(dir, base, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return id, kernel.AsErrno(err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK { // another by now
		return id, unix.EADDRINUSE
	}
	if st.Mode&0o777 != mode { // our own mask took some
		_ = unix.Fchmodat(unix.AT_FDCWD, kernel.FdPath(fd), mode, 0)
	}
	return policy.IdOf(&st), 0
}

// datagramTarget finds whom an address means: a socket of the session, or else one that is
// below a writable root, opened, which the caller closes.
func (q *Question) datagramTarget(l *datagrams.Socket, raw []byte) (ours *datagrams.Socket, other object, a Answer) {
	path, a := q.unixPath(raw, "send to")
	if a.err != 0 {
		return nil, other, a
	}
	o := q.opened(q.openPath(unix.AT_FDCWD, path, true))
	if o.e != 0 {
		return nil, o, Fail(o.e)
	}
	var st unix.Stat_t
	if err := unix.Fstat(o.fd, &st); err == nil {
		ours = l.Of.Named(policy.IdOf(&st))
	}
	if ours == nil {
		if a = q.outOfReach(o, "send to"); a.err == 0 {
			return nil, o, a
		}
	}
	unix.Close(o.fd)
	return ours, object{}, a
}

// connectUnixDatagram notes whom the asker means when it sends without an address.
func (q *Question) connectUnixDatagram(l *datagrams.Socket, raw []byte) Answer {
	if binary.NativeEndian.Uint16(raw) == unix.AF_UNSPEC {
		l.Settle(q.rest)
		l.ConnectUnix(nil, -1, nil)
		return Answer{}
	}
	ours, other, a := q.datagramTarget(l, raw)
	if a.err != 0 {
		return a
	}
	if ours != nil {
		if only := ours.UnixPeer(); only != nil && only != l {
			return Fail(unix.EPERM)
		}
		own, _ := ours.UnixNames()
		l.Settle(q.rest)
		l.ConnectUnix(ours, -1, own)
		return Answer{}
	}
	defer unix.Close(other.fd)
	out, e := openOutward(l.Of, other.fd)
	if e != 0 {
		return Fail(e)
	}
	l.Settle(q.rest)
	l.ConnectUnix(nil, out, unixAddress(cString(raw[2:])))
	return Answer{}
}

// openOutward connects a socket of ours to one that is not of the session.
func openOutward(ls *datagrams.Sockets, target int) (sock int, e unix.Errno) {
	if !ls.Take() {
		return -1, unix.EMFILE
	}
	sock, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err == nil {
		if err = kernel.ConnectOnce(sock, unixAddress(kernel.FdPath(target))); err != nil {
			unix.Close(sock)
		}
	}
	if err != nil {
		ls.Give()
		return -1, kernel.AsErrno(err)
	}
	return sock, 0
}

// sendUnixDatagram sends from our own copy of what the asker has and of the address, and
// waits for room as long as the asker's socket says.
func (q *Question) sendUnixDatagram(l *datagrams.Socket, data, raw []byte, flags int) unix.Errno {
	try := func() unix.Errno { return l.PassOn(data) }
	if raw != nil {
		ours, other, a := q.datagramTarget(l, raw)
		if a.err != 0 {
			return a.err
		}
		try = func() unix.Errno { return l.HandTo(ours, data) }
		if ours == nil {
			out, e := openOutward(l.Of, other.fd)
			unix.Close(other.fd)
			if e != 0 {
				return e
			}
			defer l.Of.Give()
			defer unix.Close(out)
			try = func() unix.Errno { return datagrams.SendNow(out, data) }
		}
	} else {
		l.Settle(q.rest) // what was sent before goes first
	}
	e := try()
	if e != unix.EAGAIN {
		return e
	}
	end, e := q.endOf(l)
	if e != 0 {
		return e
	}
	limit := waitsFor(end, flags, unix.SO_SNDTIMEO)
	unix.Close(end)
	for began := time.Now(); ; {
		left := limit - time.Since(began)
		if left <= 0 {
			return unix.EAGAIN
		}
		if e := q.awaitDatagram(nil, left); e != 0 {
			return e
		}
		if e := try(); e != unix.EAGAIN {
			return e
		}
	}
}

// waitsFor is how long a call on the asker's socket waits, 0 for not at all.
func waitsFor(end, flags, option int) time.Duration {
	state, err := unix.FcntlInt(uintptr(end), unix.F_GETFL, 0)
	if err != nil || state&unix.O_NONBLOCK != 0 || flags&unix.MSG_DONTWAIT != 0 {
		return 0
	}
	if own, err := unix.GetsockoptTimeval(end, unix.SOL_SOCKET, option); err == nil && own.Nano() > 0 {
		return time.Duration(own.Nano())
	}
	return math.MaxInt64
}
