//go:build amd64 || arm64

package confine

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	maxLookups   = 64       // sockets for names that a session has
	maxAllLook   = 1024     // and all sessions together, if they may have that many descriptors
	fewLookups   = 4        // what a session gets though others have taken nearly all
	maxAnswers   = 64       // questions of a session that are being answered
	maxQuery     = 4096     // bytes of a question
	maxDatagram  = 4096     // bytes of an answer that is no stream's
	ownBuffer    = 32 << 10 // bytes of answers that a command has not taken
	answerWithin = 20 * time.Second
	writeWithin  = 5 * time.Second
)

// lookups are the sockets of a session by which its commands ask for names. Those
// that are idle hold no thread, and a read takes a seat: what a command sends along
// with a message is closed with it, which can take as long as the command likes.
type lookups struct {
	gate   gate
	seats  seats
	budget *budget
	busy   chan struct{}
	ctx    context.Context
	end    context.CancelFunc

	held  int // sockets, under the budget's lock
	mu    sync.Mutex
	byIno map[uint64]*lookup // by the inode of the commands' end
}

// A budget is of the descriptors that sockets for names take, for all sessions.
type budget struct {
	mu         sync.Mutex
	used, most int
}

// lookupBudget leaves the most of the process's descriptors to others.
var lookupBudget = sync.OnceValue(func() *budget {
	limit := unix.Rlimit{Cur: maxAllLook}
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	return &budget{most: int(min(limit.Cur/4, maxAllLook))}
})

// take counts a socket more, where one can be had: the last quarter is for sessions
// that have few.
func (ls *lookups) take() bool {
	b := ls.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	left := b.most - b.used
	if ls.held >= maxLookups || left <= 0 || left <= b.most/4 && ls.held >= fewLookups {
		return false
	}
	b.used++
	ls.held++
	return true
}

func (ls *lookups) give() {
	ls.budget.mu.Lock()
	defer ls.budget.mu.Unlock()
	ls.budget.used--
	ls.held--
}

// A lookup is the server's end of one.
type lookup struct {
	of     *lookups
	ino    uint64
	stream bool
	domain int // of the socket that the command takes it for
	file   *os.File
	conn   syscall.RawConn
	work   sync.WaitGroup // answers

	mu     sync.Mutex
	server []byte // the address that was last asked
}

func newLookups(g gate, s seats) *lookups {
	ls := &lookups{gate: g, seats: s, budget: lookupBudget(), busy: make(chan struct{}, maxAnswers), byIno: map[uint64]*lookup{}}
	ls.ctx, ls.end = context.WithCancel(context.Background())
	return ls
}

// open makes one, whose place the caller has taken, and returns the commands' end.
func (ls *lookups) open(kind, domain int, server []byte) (theirs int, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	theirs, ours := pair[0], pair[1]
	var st unix.Stat_t
	if err := unix.Fstat(theirs, &st); err != nil {
		unix.Close(theirs)
		unix.Close(ours)
		return -1, err
	}
	_ = unix.SetsockoptInt(ours, unix.SOL_SOCKET, unix.SO_PASSRIGHTS, 0) // since 6.16: no descriptors come along
	_ = unix.SetsockoptInt(ours, unix.SOL_SOCKET, unix.SO_SNDBUF, ownBuffer)
	l := &lookup{of: ls, ino: st.Ino, stream: kind == unix.SOCK_STREAM, domain: domain, server: server,
		file: os.NewFile(uintptr(ours), "lookup")}
	l.conn, _ = l.file.SyscallConn() // fails for closed files only
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.byIno[l.ino] = l
	go l.serve()
	if ls.ctx.Err() != nil {
		l.hangUp()
	}
	return theirs, nil
}

func (ls *lookups) none() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return len(ls.byIno) == 0
}

func (ls *lookups) find(ino uint64) *lookup {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.byIno[ino]
}

// close answers nothing any more.
func (ls *lookups) close() {
	ls.end()
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.byIno {
		l.hangUp()
	}
}

// asks notes whom the command means to ask.
func (l *lookup) asks(server []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.server = server
}

func (l *lookup) asked() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.server
}

// at is the address that the command's end would have: of loopback, as the server
// that answers is here, and none before one is asked.
func (l *lookup) at() netip.AddrPort {
	var ip netip.Addr
	switch to, ok := parseInet(l.asked()); {
	case !ok && l.domain == unix.AF_INET:
		ip = netip.IPv4Unspecified()
	case !ok:
		ip = netip.IPv6Unspecified()
	case to.Addr().Unmap().Is4():
		ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	default:
		ip = netip.IPv6Loopback()
	}
	const first, count = 32768, 28232
	return netip.AddrPortFrom(ip, uint16(first+l.ino%count))
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
	l.of.mu.Lock()
	delete(l.of.byIno, l.ino)
	l.of.mu.Unlock()
	l.hangUp()
	l.work.Wait()
	leave := l.of.seats.take()
	l.file.Close()
	leave()
	l.of.give()
}

// serveDatagrams answers several questions at once, until the command has closed its
// end. What is no question gets no answer, as of a server of names.
func (l *lookup) serveDatagrams() {
	buf := make([]byte, maxQuery+1)
	for {
		n, err := l.Read(buf)
		if err != nil {
			return
		}
		if n == 0 || n > maxQuery {
			continue
		}
		query := bytes.Clone(buf[:n])
		l.of.busy <- struct{}{}
		l.work.Go(func() {
			defer func() { <-l.of.busy }()
			if reply := l.answer(query, maxDatagram); reply != nil && !l.write(reply) {
				l.hangUp()
			}
		})
	}
}

// serveStream answers one question after the other, each with its length before it.
func (l *lookup) serveStream() {
	for {
		var size [2]byte
		if _, err := io.ReadFull(l, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if len(query) > maxQuery {
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
		defer l.of.seats.take()()
		err = ignoringEINTR(func() (err error) { n, err = unix.Read(int(fd), b); return err })
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
		_ = ignoringEINTR(func() error { _, err := unix.Poll(p, 0); return err })
		over = p[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
	})
	return over
}
