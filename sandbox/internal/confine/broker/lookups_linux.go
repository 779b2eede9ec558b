//go:build amd64 || arm64

package broker

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
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
	"github.com/perstack-ai/perstack-base/sandbox/internal/network"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

const (
	MaxLookups   = 64       // sockets for names that a session has
	maxAllLook   = 1024     // and all sessions together, if they may have that many descriptors
	fewLookups   = 4        // what a session gets though others have taken nearly all
	maxAnswers   = 64       // questions of a session that are being answered
	MaxQuery     = 4096     // bytes of a question
	maxDatagram  = 4096     // bytes of an answer that is no stream's
	ownBuffer    = 32 << 10 // bytes of answers that a command has not taken
	answerWithin = 20 * time.Second
	writeWithin  = 5 * time.Second
)

// Lookups are the sockets of a session by which its commands ask for names. Those
// that are idle hold no thread, and a read takes a seat: what a command sends along
// with a message is closed with it, which can take as long as the command likes.
type Lookups struct {
	gate   Gate // nil: names have no addresses
	seats  Seats
	Budget *Budget
	busy   chan struct{}
	ctx    context.Context
	end    context.CancelFunc

	Held  int // sockets, under the budget's lock
	mu    sync.Mutex
	byIno map[uint64]*lookup // by the inode of the commands' end
	Ports map[uint16][]*lookup
	Files map[policy.FileID]*lookup // the names of Unix sockets
}

// A Budget is of the descriptors that sockets for names take, for all sessions.
type Budget struct {
	Mu         sync.Mutex
	used, most int
}

// lookupBudget leaves the most of the process's descriptors to others.
var lookupBudget = sync.OnceValue(func() *Budget {
	limit := unix.Rlimit{Cur: maxAllLook}
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	return &Budget{most: int(min(limit.Cur/4, maxAllLook))}
})

// take counts a socket more, where one can be had: the last quarter is for sessions
// that have few.
func (ls *Lookups) take() bool {
	b := ls.Budget
	b.Mu.Lock()
	defer b.Mu.Unlock()
	left := b.most - b.used
	if ls.Held >= MaxLookups || left <= 0 || left <= b.most/4 && ls.Held >= fewLookups {
		return false
	}
	b.used++
	ls.Held++
	return true
}

func (ls *Lookups) give() {
	ls.Budget.Mu.Lock()
	defer ls.Budget.Mu.Unlock()
	ls.Budget.used--
	ls.Held--
}

// A lookup is the server's end of one.
type lookup struct {
	of     *Lookups
	ino    uint64
	stream bool
	domain int // of the socket that the command takes it for
	file   *os.File
	conn   syscall.RawConn
	work   sync.WaitGroup // answers

	routing atomic.Bool   // something that the command has sent is at hand
	given   atomic.Bool   // the command has its end
	arrived chan struct{} // something may be there to receive

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

func newLookups(g Gate, s Seats) *Lookups {
	ls := &Lookups{gate: g, seats: s, Budget: lookupBudget(), busy: make(chan struct{}, maxAnswers), byIno: map[uint64]*lookup{}, Ports: map[uint16][]*lookup{},
		Files: map[policy.FileID]*lookup{}}
	ls.ctx, ls.end = context.WithCancel(context.Background())
	return ls
}

// open makes one, whose place the caller has taken, and returns the commands' end.
func (ls *Lookups) open(kind, domain int, server []byte) (theirs int, l *lookup, err error) {
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
	l = &lookup{of: ls, ino: st.Ino, stream: stream, domain: domain, server: server, end: -1, place: unixPlace{outward: -1},
		arrived: make(chan struct{}, 1), file: os.NewFile(uintptr(ours), "lookup")}
	l.conn, _ = l.file.SyscallConn() // fails for closed files only
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.byIno[l.ino] = l
	go l.serve()
	if ls.ctx.Err() != nil {
		l.hangUp()
	}
	return theirs, l, nil
}

// None reports whether the session has none.
func (ls *Lookups) None() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return len(ls.byIno) == 0
}

func (ls *Lookups) find(ino uint64) *lookup {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.byIno[ino]
}

// keep keeps the command's end, which the broker needs to receive for it.
func (l *lookup) keep(theirs int) {
	end, err := unix.FcntlInt(uintptr(theirs), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return // nothing can be received with an address, then
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end = end
}

// sweep lets go of the commands' ends that no command has any more, so that those find
// their end that the server has.
func (ls *Lookups) sweep() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	var had map[uint64]bool
	for ino, l := range ls.byIno {
		l.mu.Lock()
		if l.end >= 0 && l.given.Load() {
			if had == nil {
				had = socketsOfOthers()
			}
			if !had[ino] {
				unix.Close(l.end)
				l.end = -1
			}
		}
		l.mu.Unlock()
	}
}

// socketsOfOthers are the inodes of the sockets that processes have beside this one.
func socketsOfOthers() map[uint64]bool {
	inodes := map[uint64]bool{}
	for _, p := range proc.All() {
		if p.PID == os.Getpid() {
			continue
		}
		fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.PID))
		for _, fd := range fds {
			var ino uint64
			link, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", p.PID, fd.Name()))
			if _, err := fmt.Sscanf(link, "socket:[%d]", &ino); err == nil {
				inodes[ino] = true
			}
		}
	}
	return inodes
}

// leaving reports whether a socket that has a port has lost its last command.
func (ls *Lookups) leaving(port uint16) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return slices.ContainsFunc(ls.Ports[port], (*lookup).isOver)
}

// close answers nothing any more.
func (ls *Lookups) close() {
	ls.end()
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.byIno {
		l.hangUp()
	}
}

// connect notes whom the command means from now on: a server of names, another socket of
// the session, or with neither nobody. What it has sent before is not for them, which has
// to be read first: rest waits without a seat, as reading takes one.
func (l *lookup) connect(server []byte, peer netip.AddrPort, rest func(func())) {
	if l.asked() != nil || l.connected().IsValid() {
		l.settle(rest)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.server, l.peer = server, peer
}

// settle waits a moment for what the command has sent to be read.
func (l *lookup) settle(rest func(func())) {
	for until := time.Now().Add(time.Second); l.unread() && time.Now().Before(until); {
		rest(func() { time.Sleep(time.Millisecond) })
	}
}

// unread reports whether the command has sent what was not yet looked at.
func (l *lookup) unread() (unread bool) {
	_ = l.conn.Control(func(fd uintptr) {
		n, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
		unread = err == nil && n > 0
	})
	return unread || l.routing.Load()
}

func (l *lookup) asked() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.server
}

// name is the address that the command's end would have. A stream's is of loopback, as
// the server that answers is here.
func (l *lookup) name() netip.AddrPort {
	l.mu.Lock()
	defer l.mu.Unlock()
	to, asks := ParseInet(l.server)
	switch {
	case l.stream && asks:
		return netip.AddrPortFrom(loopbackLike(to.Addr()), uint16(firstPort+l.ino%portCount))
	case l.local.IsValid() && l.local.Addr().IsUnspecified() && asks:
		return netip.AddrPortFrom(loopbackLike(to.Addr()), l.local.Port())
	case l.local.IsValid() && l.local.Addr().IsUnspecified() && l.peer.IsValid():
		return netip.AddrPortFrom(loopbackLike(l.peer.Addr()), l.local.Port())
	case l.local.IsValid():
		return l.local
	case l.domain == unix.AF_INET:
		return netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	}
	return netip.AddrPortFrom(netip.IPv6Unspecified(), 0)
}

// hangUp has everybody who reads or writes here find the end.
func (l *lookup) hangUp() {
	_ = l.conn.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RDWR) })
}

func (l *lookup) serve() {
	if l.stream {
		l.serveStream()
	} else {
		l.serveDatagrams()
	}
	l.of.release(l)
	l.hangUp()
	l.work.Wait()
	leave := l.of.seats.Take()
	l.file.Close()
	leave()
	l.of.give()
}

// serveDatagrams takes what a command sends without an address, until it has closed its
// end: questions for names, and what is for the socket that it is connected to.
func (l *lookup) serveDatagrams() {
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
		if l.domain == unix.AF_UNIX {
			l.forwardUnix(bytes.Clone(buf[:n]))
		} else if server := l.asked(); server != nil {
			l.of.busy <- struct{}{}
			l.answerLater(bytes.Clone(buf[:n]), server)
		} else if to := l.connected(); to.IsValid() {
			l.forward(to, bytes.Clone(buf[:n]))
		}
		l.routing.Store(false)
	}
}

// answerLater answers a question beside others; the caller has taken a place for it.
// What is no question gets no answer, as of a server of names.
func (l *lookup) answerLater(query, server []byte) {
	done := func() { <-l.of.busy }
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
func (l *lookup) serveStream() {
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
		l.of.busy <- struct{}{}
		reply := l.answer(query, 0)
		if reply != nil {
			reply = append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)
		}
		ok := l.write(reply)
		<-l.of.busy
		if !ok {
			return
		}
	}
}

// answer returns nil for what is no question.
func (l *lookup) answer(query []byte, size int) []byte {
	ctx, cancel := context.WithTimeout(l.of.ctx, answerWithin)
	defer cancel()
	if l.of.gate == nil {
		return network.AnswerNone(query, size)
	}
	reply := l.of.gate.Answer(ctx, query, size)
	if len(reply) > 1<<16-1 {
		return nil
	}
	return reply
}

// write fails for no answer, and when the command does not take it.
func (l *lookup) write(reply []byte) bool {
	if reply == nil || l.file.SetWriteDeadline(time.Now().Add(writeWithin)) != nil {
		return false
	}
	_, err := l.file.Write(reply)
	return err == nil
}

// Read reads without what came along. A message may be empty, and then the end is what
// the other end tells by having gone.
func (l *lookup) Read(b []byte) (n int, err error) {
	failed := l.conn.Read(func(fd uintptr) bool {
		defer l.of.seats.Take()()
		l.routing.Store(true)
		defer func() { l.routing.Store(err == nil && !l.stream) }()
		err = kernel.IgnoringEINTR(func() (err error) { n, err = unix.Read(int(fd), b); return err })
		return err != unix.EAGAIN
	})
	switch {
	case failed != nil:
		return 0, failed
	case err != nil:
		return 0, err
	case n == 0 && (l.stream || l.isOver()):
		return 0, io.EOF
	}
	return n, nil
}

// isOver reports whether nothing can come any more.
func (l *lookup) isOver() (over bool) {
	_ = l.conn.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		_ = kernel.IgnoringEINTR(func() error { _, err := unix.Poll(p, 0); return err })
		over = p[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
	})
	return over
}
