//go:build amd64 || arm64

package broker

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

// A unixPlace is what a Unix datagram socket has beside the rest of a lookup, under its
// lock.
type unixPlace struct {
	name     []byte        // the address that it is bound to; nil for none
	file     policy.FileID // of that name
	peer     *lookup       // of the session, to which it is connected
	outward  int           // or our socket, connected to one that is not of the session; else -1
	peerName []byte        // the address of either
}

// named finds the socket that is bound to a file.
func (ls *Lookups) named(file policy.FileID) *lookup {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.Files[file]
}

// bindUnix gives a socket its name, for which make makes the file.
func (ls *Lookups) bindUnix(l *lookup, name []byte, make func() (policy.FileID, unix.Errno)) unix.Errno {
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
	ls.Files[file] = l
	return 0
}

// releaseUnix takes the socket's name from it, and whom it is connected to. The file stays,
// as one does. It needs both locks.
func (ls *Lookups) releaseUnix(l *lookup) {
	if ls.Files[l.place.file] == l {
		delete(ls.Files, l.place.file)
	}
	l.disconnectUnix()
}

// disconnectUnix needs the lock.
func (l *lookup) disconnectUnix() {
	if l.place.outward >= 0 {
		unix.Close(l.place.outward)
		l.of.give()
	}
	l.place.peer, l.place.outward, l.place.peerName = nil, -1, nil
}

// connectUnix connects to a socket of the session, or by outward to another, or to none.
func (l *lookup) connectUnix(peer *lookup, outward int, name []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.disconnectUnix()
	l.place.peer, l.place.outward, l.place.peerName = peer, outward, name
	if l.over {
		l.disconnectUnix()
	}
}

// unixNames are its own address, without a path where it has none, and that of whom it is
// connected to, nil for nobody.
func (l *lookup) unixNames() (own, peer []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Concat([]byte{unix.AF_UNIX, 0}, l.place.name[min(2, len(l.place.name)):]), l.place.peerName
}

// unixPeer is the socket of the session that it is connected to, or nil.
func (l *lookup) unixPeer() *lookup {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.place.peer
}

// released reports whether no command has its end any more.
func (l *lookup) released() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

// sender is what a receiver finds of a socket: nothing where it has no name.
func (l *lookup) sender() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.place.name
}

// forwardUnix passes on what a command has sent without an address. It waits for room: a
// Unix datagram is not lost, and what the command sends meanwhile waits with it.
func (l *lookup) forwardUnix(data []byte) {
	for wait := time.Millisecond; ; wait = min(2*wait, lookAgain) {
		e := l.passOn(data)
		if e != unix.EAGAIN || l.unixPeer() == nil && l.isOver() {
			return
		}
		select {
		case <-l.of.ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// passOn sends to whom the socket is connected; EAGAIN means that there is no room yet.
func (l *lookup) passOn(data []byte) unix.Errno {
	l.mu.Lock()
	peer, out := l.place.peer, l.place.outward
	if peer == nil {
		defer l.mu.Unlock()
		if out < 0 {
			return unix.ENOTCONN
		}
		return sendNow(out, data)
	}
	l.mu.Unlock()
	return l.handTo(peer, data)
}

// handTo has a datagram delivered to a socket of the session.
func (l *lookup) handTo(target *lookup, data []byte) unix.Errno {
	if only := target.unixPeer(); only != nil && only != l {
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

// sendNow sends by a socket of ours without waiting.
func sendNow(sock int, data []byte) unix.Errno {
	return failed(kernel.IgnoringEINTR(func() error { return unix.Send(sock, data, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL) })).err
}
