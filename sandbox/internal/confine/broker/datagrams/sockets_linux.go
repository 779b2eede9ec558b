//go:build amd64 || arm64

package datagrams

import (
	"bytes"
	"context"
	"io"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
)

const (
	MaxSockets    = 64       // sockets for names that a session has
	maxAllSockets = 1024     // and all sessions together, if they may have that many descriptors
	fewSockets    = 4        // what a session gets though others have taken nearly all
	maxAnswers    = 64       // questions of a session that are being answered
	MaxQuery      = 4096     // bytes of a question
	maxDatagram   = 4096     // bytes of an answer that is no stream's
	ownBuffer     = 32 << 10 // bytes of answers that a command has not taken
	answerWithin  = 20 * time.Second
	writeWithin   = 5 * time.Second
)

// Sockets are the sockets of a session by which its commands ask for names. Those
// that are idle hold no thread, and a read takes a seat: what a command sends along
// with a message is closed with it, which can take as long as the command likes.
type Sockets struct {
	names  Names                 // nil: names have no addresses
	seat   func() (leave func()) // waits for one
	budget *allowance
	busy   chan struct{}
	ctx    context.Context
	end    context.CancelFunc

	held  int // sockets, under the budget's lock
	mu    sync.Mutex
	byIno map[uint64]*Socket // by the inode of the commands' end
	ports map[uint16][]*Socket
	files map[policy.FileID]*Socket // the names of Unix sockets
}

// An allowance is of the descriptors that sockets for names take, for all sessions.
type allowance struct {
	mu         sync.Mutex
	used, most int
}

// sharedAllowance leaves the most of the process's descriptors to others.
var sharedAllowance = sync.OnceValue(func() *allowance {
	limit := unix.Rlimit{Cur: maxAllSockets}
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	return &allowance{most: int(min(limit.Cur/4, maxAllSockets))}
})

// Take counts a socket more, where one can be had: the last quarter is for sessions
// that have few.
func (ls *Sockets) Take() bool {
	b := ls.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	left := b.most - b.used
	if ls.held >= MaxSockets || left <= 0 || left <= b.most/4 && ls.held >= fewSockets {
		return false
	}
	b.used++
	ls.held++
	return true
}

// TakeWithin waits for one where none can be had.
func (ls *Sockets) TakeWithin(limit time.Duration) bool {
	had := ls.Take()
	for until := time.Now().Add(limit); !had && ls.ctx.Err() == nil && time.Now().Before(until); had = ls.Take() {
		time.Sleep(10 * time.Millisecond)
	}
	return had
}

// Give gives back what Take took.
func (ls *Sockets) Give() {
	ls.budget.mu.Lock()
	defer ls.budget.mu.Unlock()
	ls.budget.used--
	ls.held--
}

// A Socket is the server's end of one.
type Socket struct {
	Of     *Sockets
	Ino    uint64
	Stream bool
	Domain int // of the socket that the command takes it for
	file   *os.File
	conn   syscall.RawConn
	work   sync.WaitGroup // answers

	routing atomic.Bool   // something that the command has sent is at hand
	given   atomic.Bool   // the command has its end
	Arrived chan struct{} // something may be there to receive

	mu      sync.Mutex
	server  []byte         // the address of the server of names that was last asked
	local   netip.AddrPort // where others of the session find it
	peer    netip.AddrPort // of the session, to which it is connected
	queue   []datagram
	queued  int // bytes
	pumping bool
	from    []byte // the sender of what the command receives next
	end     int    // the command's end, where it cannot be had from the command; else -1
	place   unixPlace
	over    bool
}

// New makes those of a session, which reads after seat has given it a seat.
func New(n Names, seat func() (leave func())) *Sockets {
	ls := &Sockets{names: n, seat: seat, budget: sharedAllowance(), busy: make(chan struct{}, maxAnswers), byIno: map[uint64]*Socket{}, ports: map[uint16][]*Socket{},
		files: map[policy.FileID]*Socket{}}
	ls.ctx, ls.end = context.WithCancel(context.Background())
	return ls
}

// Open makes one, whose place the caller has taken, and returns the commands' end.
func (ls *Sockets) Open(kind, domain int, server []byte) (theirs int, l *Socket, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, nil, err
	}
	theirs, ours := pair[0], pair[1]
	var st unix.Stat_t
	if err := unix.Fstat(theirs, &st); err != nil {
		unix.Close(theirs)
		unix.Close(ours)
		return -1, nil, err
	}
	_ = unix.SetsockoptInt(ours, unix.SOL_SOCKET, unix.SO_PASSRIGHTS, 0) // since 6.16: no descriptors come along
	stream := kind == unix.SOCK_STREAM
	buffer := pairBuffer
	if stream {
		buffer = ownBuffer
	}
	_ = unix.SetsockoptInt(ours, unix.SOL_SOCKET, unix.SO_SNDBUF, buffer)
	l = &Socket{Of: ls, Ino: st.Ino, Stream: stream, Domain: domain, server: server, end: -1, place: unixPlace{outward: -1},
		Arrived: make(chan struct{}, 1), file: os.NewFile(uintptr(ours), "Socket")}
	l.conn, _ = l.file.SyscallConn() // fails for closed files only
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.byIno[l.Ino] = l
	go l.serve()
	if ls.ctx.Err() != nil {
		l.hangUp()
	}
	return theirs, l, nil
}

// Held is how many places are taken, and how many addresses: in the end none.
func (ls *Sockets) Held() (places, addresses int) {
	ls.budget.mu.Lock()
	places = ls.held
	ls.budget.mu.Unlock()
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return places, len(ls.ports) + len(ls.files)
}

// None reports whether the session has none.
func (ls *Sockets) None() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return len(ls.byIno) == 0
}

// Find finds one by the inode of the commands' end.
func (ls *Sockets) Find(ino uint64) *Socket {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.byIno[ino]
}

// HandOut notes that the command has its end, so that it can be missed.
func (l *Socket) HandOut() { l.given.Store(true) }

// Duplicate duplicates the command's end that was kept.
func (l *Socket) Duplicate() (end int, e unix.Errno) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end < 0 {
		return -1, unix.EBADF
	}
	end, err := unix.FcntlInt(uintptr(l.end), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, unix.EMFILE
	}
	return end, 0
}

// Keep keeps the command's end, which the broker needs to receive for it.
func (l *Socket) Keep(theirs int) {
	end, err := unix.FcntlInt(uintptr(theirs), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return // nothing can be received with an address, then
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end = end
}

// Sweep lets go of the commands' ends that no command has any more, so that those find
// their end that the server has.
func (ls *Sockets) Sweep() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	var had map[uint64]bool
	for ino, l := range ls.byIno {
		l.mu.Lock()
		if l.end >= 0 && l.given.Load() {
			if had == nil {
				had = map[uint64]bool{}
				for other := range kernel.SocketsOfOthers {
					had[other.Inode] = true
				}
			}
			if !had[ino] {
				unix.Close(l.end)
				l.end = -1
			}
		}
		l.mu.Unlock()
	}
}

// Leaving reports whether a socket that has a port has lost its last command.
func (ls *Sockets) Leaving(port uint16) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return slices.ContainsFunc(ls.ports[port], (*Socket).isOver)
}

// Close answers nothing any more.
func (ls *Sockets) Close() {
	ls.end()
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.byIno {
		l.hangUp()
	}
}

// Connect notes whom the command means from now on: a server of names, another socket of
// the session, or with neither nobody. What it has sent before is not for them, which has
// to be read first: rest waits without a seat, as reading takes one.
func (l *Socket) Connect(server []byte, peer netip.AddrPort, rest func(func())) {
	if l.Asked() != nil || l.Connected().IsValid() {
		l.Settle(rest)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.server, l.peer = server, peer
}

// Settle waits a moment for what the command has sent to be read.
func (l *Socket) Settle(rest func(func())) {
	for until := time.Now().Add(time.Second); l.unread() && time.Now().Before(until); {
		rest(func() { time.Sleep(time.Millisecond) })
	}
}

// unread reports whether the command has sent what was not yet looked at.
func (l *Socket) unread() (unread bool) {
	_ = l.conn.Control(func(fd uintptr) {
		n, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
		unread = err == nil && n > 0
	})
	return unread || l.routing.Load()
}

// Asked is the address of the server of names that was last asked.
func (l *Socket) Asked() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.server
}

// name is the address that the command's end would have. A stream's is of loopback, as
// the server that answers is here.
func (l *Socket) name() netip.AddrPort {
	l.mu.Lock()
	defer l.mu.Unlock()
	to, asks := kernel.ParseInet(l.server)
	switch {
	case l.Stream && asks:
		return netip.AddrPortFrom(LoopbackLike(to.Addr()), uint16(firstPort+l.Ino%portCount))
	case l.local.IsValid() && l.local.Addr().IsUnspecified() && asks:
		return netip.AddrPortFrom(LoopbackLike(to.Addr()), l.local.Port())
	case l.local.IsValid() && l.local.Addr().IsUnspecified() && l.peer.IsValid():
		return netip.AddrPortFrom(LoopbackLike(l.peer.Addr()), l.local.Port())
	case l.local.IsValid():
		return l.local
	case l.Domain == unix.AF_INET:
		return netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	}
	return netip.AddrPortFrom(netip.IPv6Unspecified(), 0)
}

// OwnAddress is name as the command's kind of socket has it.
func (l *Socket) OwnAddress() []byte {
	if l.Domain == unix.AF_UNIX {
		own, _ := l.UnixNames()
		return own
	}
	return kernel.InetAddress(l.Domain, l.name())
}

// hangUp has everybody who reads or writes here find the end.
func (l *Socket) hangUp() {
	_ = l.conn.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RDWR) })
}

func (l *Socket) serve() {
	if l.Stream {
		l.serveStream()
	} else {
		l.serveDatagrams()
	}
	l.Of.release(l)
	l.hangUp()
	l.work.Wait()
	leave := l.Of.seat()
	l.file.Close()
	leave()
	l.Of.Give()
}

// serveDatagrams takes what a command sends without an address, until it has closed its
// end: questions for names, and what is for the socket that it is connected to.
func (l *Socket) serveDatagrams() {
	buf := make([]byte, MaxUDP+1)
	for {
		n, err := l.Read(buf)
		if err != nil {
			return
		}
		if n > MaxUDP {
			l.routing.Store(false)
			continue
		}
		if l.Domain == unix.AF_UNIX {
			l.forwardUnix(bytes.Clone(buf[:n]))
		} else if server := l.Asked(); server != nil {
			l.Of.busy <- struct{}{}
			l.answerLater(bytes.Clone(buf[:n]), server)
		} else if to := l.Connected(); to.IsValid() {
			l.Forward(to, bytes.Clone(buf[:n]))
		}
		l.routing.Store(false)
	}
}

// Read reads without what came along. A message may be empty, and then the end is what
// the other end tells by having gone.
func (l *Socket) Read(b []byte) (n int, err error) {
	failed := l.conn.Read(func(fd uintptr) bool {
		defer l.Of.seat()()
		l.routing.Store(true)
		defer func() { l.routing.Store(err == nil && !l.Stream) }()
		err = kernel.IgnoringEINTR(func() (err error) { n, err = unix.Read(int(fd), b); return err })
		return err != unix.EAGAIN
	})
	switch {
	case failed != nil:
		return 0, failed
	case err != nil:
		return 0, err
	case n == 0 && (l.Stream || l.isOver()):
		return 0, io.EOF
	}
	return n, nil
}

// isOver reports whether nothing can come any more.
func (l *Socket) isOver() (over bool) {
	_ = l.conn.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		_ = kernel.IgnoringEINTR(func() error { _, err := unix.Poll(p, 0); return err })
		over = p[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
	})
	return over
}
