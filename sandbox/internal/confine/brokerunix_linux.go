//go:build amd64 || arm64

package confine

import (
	"bytes"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"

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
		if !c.names.has(string(name)) {
			return q.refuse(unix.ECONNREFUSED, "connect to the abstract socket @"+string(name[1:]), "")
		}
		return failed(q.rawConnect(sock, raw))
	}
	target := q.opened(q.openPath(unix.AT_FDCWD, cString(name), true))
	if target.e == 0 && servers.isFile(target.fd) {
		unix.Close(target.fd)
		return q.refuse(unix.EACCES, "connect to "+target.path+", where the server that runs the commands listens", "")
	}
	return q.change(target, "connect to", func() error {
		return q.rawConnect(sock, unixAddress(fdPath(target.fd)))
	})
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

// abstractNames are the abstract Unix sockets on which the session listens, by
// name, each with its inode.
type abstractNames struct {
	mu    sync.Mutex
	inode map[string]uint64
	many  int // with how many the dead are forgotten
}

// add remembers a listening socket if its name is abstract.
func (a *abstractNames) add(sock int) {
	name, ino := abstractName(sock)
	if name == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.inode == nil {
		a.inode = map[string]uint64{}
	}
	if len(a.inode) >= max(a.many, fewNames) {
		alive := unixInodes()
		maps.DeleteFunc(a.inode, func(_ string, ino uint64) bool { return !alive[ino] })
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

func abstractName(sock int) (name string, inode uint64) {
	sa, err := unix.Getsockname(sock)
	un, ok := sa.(*unix.SockaddrUnix)
	var st unix.Stat_t
	if err != nil || !ok || !strings.HasPrefix(un.Name, "@") || unix.Fstat(sock, &st) != nil {
		return "", 0
	}
	return "\x00" + un.Name[1:], st.Ino
}

// has reports whether the name (with its leading NUL) still belongs to a socket
// of the session.
func (a *abstractNames) has(name string) bool {
	a.mu.Lock()
	ino, known := a.inode[name]
	a.mu.Unlock()
	return known && unixInodes()[ino]
}
