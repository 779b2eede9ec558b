//go:build amd64 || arm64

package datagrams

import (
	"slices"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"golang.org/x/sys/unix"
)

// Unix datagrams between commands of one session. As with UDP a command has the end of a
// pair in place of a socket, and the server delivers what it sends. A name is a file that
// the broker has made, known by its inode: nobody outside the session listens there.

// longestPause is between two looks for room.
const longestPause = 20 * time.Millisecond

// A unixPlace is what a Unix datagram socket has beside the rest of a Socket, under its
// lock.
type unixPlace struct {
	name     []byte        // the address that it is bound to; nil for none
	file     policy.FileID // of that name
	peer     *Socket       // of the session, to which it is connected
	outward  int           // or our socket, connected to one that is not of the session; else -1
	peerName []byte        // the address of either
}

// Named finds the socket that is bound to a file.
func (ls *Sockets) Named(file policy.FileID) *Socket {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.files[file]
}

// BindUnix gives a socket its name, for which make makes the file.
func (ls *Sockets) BindUnix(l *Socket, name []byte, make func() (policy.FileID, unix.Errno)) unix.Errno {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.place.name != nil || l.over {
		return unix.EINVAL
	}
	file, e := make()
	if e != 0 {
		return e
	}
	l.place.name, l.place.file = name, file
	ls.files[file] = l
	return 0
}

// releaseUnix takes the socket's name from it, and whom it is connected to. The file stays,
// as one does. It needs both locks.
func (ls *Sockets) releaseUnix(l *Socket) {
	if ls.files[l.place.file] == l {
		delete(ls.files, l.place.file)
	}
	l.disconnectUnix()
}

// disconnectUnix needs the lock.
func (l *Socket) disconnectUnix() {
	if l.place.outward >= 0 {
		unix.Close(l.place.outward)
		l.Of.Give()
	}
	l.place.peer, l.place.outward, l.place.peerName = nil, -1, nil
}

// ConnectUnix connects to a socket of the session, or by outward to another, or to none.
func (l *Socket) ConnectUnix(peer *Socket, outward int, name []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.disconnectUnix()
	l.place.peer, l.place.outward, l.place.peerName = peer, outward, name
	if l.over {
		l.disconnectUnix()
	}
}

// UnixNames are its own address, without a path where it has none, and that of whom it is
// connected to, nil for nobody.
func (l *Socket) UnixNames() (own, peer []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Concat([]byte{unix.AF_UNIX, 0}, l.place.name[min(2, len(l.place.name)):]), l.place.peerName
}

// UnixPeer is the socket of the session that it is connected to, or nil.
func (l *Socket) UnixPeer() *Socket {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.place.peer
}

// released reports whether no command has its end any more.
func (l *Socket) released() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

// sender is what a receiver finds of a socket: nothing where it has no name.
func (l *Socket) sender() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.place.name
}

// forwardUnix passes on what a command has sent without an address. It waits for room: a
// Unix datagram is not lost, and what the command sends meanwhile waits with it.
func (l *Socket) forwardUnix(data []byte) {
	for wait := time.Millisecond; ; wait = min(2*wait, longestPause) {
		e := l.PassOn(data)
		if e != unix.EAGAIN || l.UnixPeer() == nil && l.isOver() {
			return
		}
		select {
		case <-l.Of.ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// PassOn sends to whom the socket is connected; EAGAIN means that there is no room yet.
func (l *Socket) PassOn(data []byte) unix.Errno {
	l.mu.Lock()
	peer, out := l.place.peer, l.place.outward
	if peer == nil {
		defer l.mu.Unlock()
		if out < 0 {
			return unix.ENOTCONN
		}
		return SendNow(out, data)
	}
	l.mu.Unlock()
	return l.HandTo(peer, data)
}

// HandTo has a datagram delivered to a socket of the session.
func (l *Socket) HandTo(target *Socket, data []byte) unix.Errno {
	if only := target.UnixPeer(); only != nil && only != l {
		return unix.EPERM
	}
	switch {
	case target.deliver(datagram{from: l.sender(), data: data}):
		return 0
	case target.released():
		return unix.ECONNREFUSED
	}
	return unix.EAGAIN
}

// SendNow sends by a socket of ours without waiting.
func SendNow(sock int, data []byte) unix.Errno {
	return kernel.AsErrno(kernel.IgnoringEINTR(func() error { return unix.Send(sock, data, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL) }))
}
