package containers

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/remote"
)

// The standard streams of a container pass through the engine's client, its daemon and
// what holds the container: several programs that have to wake up for every message,
// which takes longer than a short command. So server and runner speak through a Unix
// socket in the container's private tree, where both see it. The standard streams stay:
// they carry hello and welcome, their end is the end of either side, and where the
// socket cannot be reached (another machine, a kernel of its own as gVisor's) they
// carry the rest as well.
//
// The socket has no name any more, and nobody listens at it, when the first command
// comes; who connects before has to know a token that only hello has told.

// A direct is the server's end of such a socket, before the runner has come. The methods
// of a nil one do nothing.
type direct struct {
	listener *net.UnixListener
	token    string
}

const (
	directName = "runner.sock" // in the tree
	directTime = 5 * time.Second
)

// openDirect listens in a tree; nil where that cannot be.
func openDirect(tree string) *direct {
	if runtime.GOOS != "linux" { // engines are in a virtual machine
		return nil
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(tree, directName), Net: "unix"})
	if err != nil {
		return nil // such as too long a path
	}
	return &direct{listener: l, token: randomName(16)}
}

// close removes the socket.
func (d *direct) close() {
	if d != nil {
		_ = d.listener.Close()
	}
}

// offer tells a runner of the socket; tree is where it sees that.
func (d *direct) offer(h *remote.Hello, tree string) {
	if d != nil {
		h.Socket, h.Token = remote.Raw(tree+"/"+directName), d.token
	}
}

// errNotDirect: a runner said that it has connected, and nobody had.
var errNotDirect = errors.New("a runner said that it speaks through a socket to which it has not connected")

// accept takes the runner's connection, which is there already, and lets nobody in
// after that.
func (d *direct) accept() (*net.UnixConn, error) {
	if d == nil {
		return nil, errNotDirect
	}
	defer d.close()
	deadline := time.Now().Add(directTime)
	_ = d.listener.SetDeadline(deadline)
	for {
		conn, err := d.listener.AcceptUnix()
		if err != nil {
			return nil, errNotDirect
		}
		_ = conn.SetDeadline(deadline)
		token := make([]byte, len(d.token))
		if _, err := io.ReadFull(conn, token); err == nil && subtle.ConstantTimeCompare(token, []byte(d.token)) == 1 {
			_ = conn.SetDeadline(time.Time{})
			return conn, nil
		}
		conn.Close()
	}
}

// DialDirect connects a runner to the socket that hello tells of; nil where there is
// none, or none that can be reached.
func DialDirect(h *remote.Hello) net.Conn {
	if h.Socket == "" {
		return nil
	}
	conn, err := net.DialTimeout("unix", string(h.Socket), directTime)
	if err != nil {
		return nil
	}
	if _, err := conn.Write([]byte(h.Token)); err != nil {
		conn.Close()
		return nil
	}
	return conn
}

// goDirect has the stream go through the socket. What was the stream says nothing any
// more, and ends when the container does.
func (c *Conn) goDirect(d *direct, frames *remote.Reader) (*remote.Reader, error) {
	conn, err := d.accept()
	if err != nil {
		return nil, err
	}
	c.out = c.writer(conn)
	go func() {
		<-c.Done
		conn.Close()
	}()
	go func() { c.Fail(EndOf(frames)) }()
	return remote.NewReader(conn, remote.MaxFromRunner), nil
}

// EndOf waits for the end of a stream on which nothing comes any more.
func EndOf(frames *remote.Reader) error {
	m, err := frames.Read()
	if err == nil {
		err = fmt.Errorf("a message of type %.32q on a stream that was left", m.Type)
	}
	return err
}
