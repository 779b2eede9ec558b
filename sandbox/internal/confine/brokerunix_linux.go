//go:build amd64 || arm64

package confine

import (
	"bytes"
	"encoding/binary"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bindUnix gives a Unix socket its name. A path is Landlock's to judge, as the
// making of a file. Should the asker swap the socket meanwhile for one of the
// network's, Landlock refuses that too, or listen does.
func (q *question) bindUnix(sock int, raw []byte) answer {
	if len(raw) > 2 && raw[2] != 0 {
		return answer{run: true}
	}
	return failed(rawBind(sock, raw)) // abstract
}

// connectUnix connects to sockets below writable roots, and to abstract ones on
// which the session listens.
func (q *question) connectUnix(sock int, raw []byte) answer {
	c := q.broker.domain.confiner
	name := raw[2:]
	if len(name) == 0 {
		return fail(unix.EINVAL)
	}
	if name[0] == 0 {
		who := abstractName{socketType(sock), string(name)}
		q.still = func() bool { return c.names.has(who) } // the name may have become another's
		ours := q.still()
		if ours {
			err := q.rawConnect(sock, raw)
			if ours = err != nil || listensForUs(sock) && q.still(); ours {
				return failed(err)
			}
			_ = unix.Shutdown(sock, unix.SHUT_RDWR)
		}
		return q.refuse(unix.ECONNREFUSED, "connect to the abstract socket @"+string(name[1:]), "")
	}
	target := q.opened(q.openPath(unix.AT_FDCWD, cString(name), true))
	if target.e != 0 {
		return fail(target.e)
	}
	if a := q.outOfReach(target, "connect to"); a.err != 0 {
		unix.Close(target.fd)
		return a
	}
	return q.change(target, "connect to", func() error {
		return q.rawConnect(sock, unixAddress(fdPath(target.fd)))
	})
}

// outOfReach refuses what an opened socket's place forbids.
func (q *question) outOfReach(target object, verb string) answer {
	switch {
	case servers.isFile(target.fd):
		return q.refuse(unix.EACCES, verb+" "+target.path+", where the server that runs the commands listens", "")
	case onReadOnly(target.fd), !q.broker.domain.confiner.writable(target.path): // whoever made it is not of the session
		return q.refuse(unix.EACCES, verb+" "+target.path, "--allow-write "+target.path)
	}
	return answer{}
}

// onReadOnly reports whether a file is where nobody who sees it there can write.
func onReadOnly(fd int) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(fd, &fs) == nil && fs.Flags&unix.ST_RDONLY != 0
}

// listensForUs reports whether the other side of a connected socket listened by the
// broker, as all that the session listens with do.
func listensForUs(sock int) bool {
	peer, err := unix.GetsockoptUcred(sock, unix.SOL_SOCKET, unix.SO_PEERCRED)
	return err == nil && int(peer.Pid) == os.Getpid()
}

func cString(b []byte) string {
	if end := bytes.IndexByte(b, 0); end >= 0 {
		b = b[:end]
	}
	return string(b)
}

// fdPath names what a descriptor of ours refers to, wherever it was moved.
func fdPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// unixAddress writes a struct sockaddr_un.
func unixAddress(path string) []byte {
	return append([]byte{unix.AF_UNIX, 0}, path+"\x00"...)
}

// An abstractName is what the kernel finds an abstract socket by: all bytes of its
// name from the leading NUL on, and its type, as each type has names of its own.
type abstractName struct {
	kind int
	name string
}

// abstractNames are the abstract Unix sockets on which the session listens, each
// with its inode.
type abstractNames struct {
	mu    sync.Mutex
	inode map[abstractName]uint64
	many  int // with how many the dead are forgotten
}

// add remembers a listening socket if its name is abstract.
func (a *abstractNames) add(sock int) {
	name, ino, ok := abstractNameOf(sock)
	if !ok {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.inode == nil {
		a.inode = map[abstractName]uint64{}
	}
	if len(a.inode) >= max(a.many, fewNames) {
		alive := unixInodes()
		maps.DeleteFunc(a.inode, func(_ abstractName, ino uint64) bool { return !alive[ino] })
		a.many = 2 * len(a.inode)
	}
	a.inode[name] = ino
}

// fewNames may be kept without asking which of them still exist.
const fewNames = 64

// unixInodes are all Unix sockets of the machine.
func unixInodes() map[uint64]bool {
	table, _ := os.ReadFile("/proc/net/unix")
	inodes := map[uint64]bool{}
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) >= 7 {
			ino, _ := strconv.ParseUint(f[6], 10, 64)
			inodes[ino] = true
		}
	}
	return inodes
}

// abstractNameOf reads the name as the kernel has it: what package unix makes of
// it ends at the next NUL, and looks like that of a path that begins with '@'.
func abstractNameOf(sock int) (name abstractName, inode uint64, ok bool) {
	var raw [unix.SizeofSockaddrAny]byte
	size := uint32(len(raw))
	_, _, e := unix.Syscall(unix.SYS_GETSOCKNAME, uintptr(sock),
		uintptr(unsafe.Pointer(&raw[0])), uintptr(unsafe.Pointer(&size)))
	var st unix.Stat_t
	if e != 0 || size <= 2 || int(size) > len(raw) || binary.NativeEndian.Uint16(raw[:]) != unix.AF_UNIX ||
		raw[2] != 0 || unix.Fstat(sock, &st) != nil {
		return abstractName{}, 0, false
	}
	return abstractName{socketType(sock), string(raw[2:size])}, st.Ino, true
}

// has reports whether the name still belongs to a socket of the session.
func (a *abstractNames) has(name abstractName) bool {
	a.mu.Lock()
	ino, known := a.inode[name]
	a.mu.Unlock()
	return known && unixInodes()[ino]
}
