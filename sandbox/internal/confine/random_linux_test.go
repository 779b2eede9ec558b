//go:build amd64 || arm64

package confine

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/threads"
	"golang.org/x/sys/unix"
)

// randomVar is how long each mechanism is tried at random, as in 10m.
const randomVar = "PERSTACK_BASE_RANDOM_TIME"

// canary stands in every file outside of the workspace.
const canary = "c4n4ry-of-the-outside"

func init() { probeTable["random"] = escape{try: randomCalls} }

// TestRandomCalls lets a program make random calls with hostile arguments from
// several threads. Outside nothing may change, nobody may be reached or signalled,
// and nothing from outside may turn up inside.
func TestRandomCalls(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	span := 2 * time.Second
	if text := os.Getenv(randomVar); text != "" {
		span, err = time.ParseDuration(text)
		must(t, err)
	}
	commandTime += span
	t.Cleanup(func() { commandTime -= span })
	env := func(w *world, server int) []string {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		return append(w.env, probeVar+"=random", fmt.Sprintf("RANDOM_SEED=%d", seed), fmt.Sprintf("RANDOM_SERVER=%d", server), "RANDOM_SPAN="+span.String())
	}
	t.Run("unconfined", func(t *testing.T) { // which proves that the world notices
		w := newWorld(t)
		_ = w.do(t, nil, env(w, w.victim), exe)
		if w.damage() == "" {
			t.Error("unconfined random calls do no damage: nothing is proven")
		}
	})
	confined := func(t *testing.T, w *world, c *threads.Confiner) {
		r := w.do(t, c, env(w, os.Getpid()), exe)
		must(t, r.domain.Kill())
		waitDone(t, r.domain)
		w.judge(t, r.out)
	}
	t.Run("threads", func(t *testing.T) {
		w := newWorld(t)
		confined(t, w, confiner(t, w.policy(), kernel.Missing{}))
	})
	t.Run("threads, behind a gate", func(t *testing.T) {
		w := newWorld(t)
		c, _ := gated(t, w.place, "one.example,198.51.100.1", &book{}, kernel.Missing{})
		confined(t, w, c)
	})
	t.Run("namespaces", func(t *testing.T) {
		w := newWorld(t)
		out, _ := w.in(t, w.isolator(t, true), env(w, os.Getpid()), exe)
		w.judge(t, out)
	})
}

// A world is a place with a witness for everything that must not happen.
type world struct {
	place
	victim  int
	reached atomic.Int32 // connections and datagrams that arrived outside
	before  string
	env     []string
}

func newWorld(t *testing.T) *world {
	w := &world{place: newPlace(t)}
	must(t, os.Mkdir(filepath.Join(w.outside, "dir"), 0o755))
	for _, name := range []string{"secret", "other", "dir/deep"} {
		must(t, os.WriteFile(filepath.Join(w.outside, name), []byte(canary), 0o644))
	}
	must(t, os.Symlink(w.outside, filepath.Join(w.ws, "way-out")))
	sock := filepath.Join(w.outside, "sock")
	tcp := w.witness(t, "tcp", "127.0.0.1:0")
	w.witness(t, "unix", sock)
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { udp.Close() })
	go func() {
		for {
			if _, _, err := udp.ReadFrom(make([]byte, 16)); err != nil {
				return
			}
			w.reached.Add(1)
		}
	}()
	w.victim = bystander(t, w.outside)
	w.env = []string{"RANDOM_OUTSIDE=" + w.outside, "RANDOM_TCP=" + tcp, "RANDOM_UDP=" + udp.LocalAddr().String(),
		"RANDOM_SOCK=" + sock, fmt.Sprintf("RANDOM_VICTIM=%d", w.victim)}
	w.before = w.picture()
	return w
}

func (w *world) witness(t *testing.T, network, address string) string {
	l, err := net.Listen(network, address)
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			w.reached.Add(1)
			conn.Close()
		}
	}()
	return l.Addr().String()
}

// picture is everything about the outside that a command could change.
func (w *world) picture() string {
	var out strings.Builder
	_ = filepath.WalkDir(w.outside, func(path string, d fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil {
			err = unix.Lstat(path, &st)
		}
		var text []byte
		if d.Type().IsRegular() {
			text, _ = os.ReadFile(path)
		}
		fmt.Fprintf(&out, "%s %v %o %d %d %d %v %x\n", path, err, st.Mode, st.Uid, st.Size, st.Nlink, st.Mtim, text)
		return nil
	})
	return out.String()
}

// damage says what happened that must not, "" for nothing.
func (w *world) damage() string {
	switch {
	case w.picture() != w.before:
		return "the outside has changed:\n" + w.before + "\nis now\n" + w.picture()
	case w.reached.Load() > 0:
		return "a server outside was reached"
	case ended(w.victim):
		return "a process outside was signalled"
	}
	return w.leak()
}

func ended(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	return err != nil || strings.HasPrefix(rest, "Z") || strings.HasPrefix(rest, "T")
}

// leak looks for the canary in the workspace, where a program could have put it.
func (w *world) leak() (found string) {
	_ = filepath.WalkDir(w.ws, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		if text, _ := os.ReadFile(path); bytes.Contains(text, []byte(canary)) {
			found = path + " holds what stands outside"
		}
		return nil
	})
	return found
}

func (w *world) judge(t *testing.T, out string) {
	t.Helper()
	if t.Log(strings.TrimSpace(out)); !strings.Contains(out, "random calls: ") {
		t.Errorf("the program did not come to its end: %s", out)
	}
	if bad := w.damage(); bad != "" {
		t.Error(bad)
	}
	if strings.Contains(out, canary) {
		t.Error("the program has read what stands outside")
	}
}

// randomCalls is the program inside.
func randomCalls() error {
	var seed uint64
	fmt.Sscan(os.Getenv("RANDOM_SEED"), &seed)
	span, err := time.ParseDuration(os.Getenv("RANDOM_SPAN"))
	if err != nil {
		return err
	}
	end := time.Now().Add(span)
	var made atomic.Int64
	var all sync.WaitGroup
	for n := range uint64(4) {
		all.Go(func() {
			runtime.LockOSThread()
			r := &roller{Rand: rand.New(rand.NewPCG(seed, n))}
			for time.Now().Before(end) {
				r.call()
				made.Add(1)
			}
		})
	}
	all.Wait()
	fmt.Println("random calls:", made.Load())
	return nil
}

// A roller makes random calls with what earlier ones gave.
type roller struct {
	*rand.Rand
	fds []int
}

func pick[T any](r *roller, from []T) T { return from[r.IntN(len(from))] }

// path is one that leads out, or in, or to what leads out.
func (r *roller) path() string {
	out := os.Getenv("RANDOM_OUTSIDE")
	server, victim := os.Getenv("RANDOM_SERVER"), os.Getenv("RANDOM_VICTIM")
	parts := []string{"", "/secret", "/other", "/dir", "/dir/deep", "/new", "/sock", "/.", "/a/b"}
	if server != victim { // unconfined it must not climb out of the test's own directory
		parts = append(parts, "/..")
	}
	base := pick(r, []string{out, "way-out", "../outside", "/proc/self/cwd/../outside", "/proc/self/root" + out, "in", ".", "ln",
		"/proc/" + victim + "/cwd", "/proc/" + server + "/root" + out, "/proc/self/fd/3"})
	return base + pick(r, parts)
}

func (r *roller) fd() int {
	if len(r.fds) == 0 || r.IntN(8) == 0 {
		return pick(r, []int{unix.AT_FDCWD, 3, 4, 5, 6, 7, 8, 9})
	}
	return pick(r, r.fds)
}

func (r *roller) keep(fd int, err error) {
	if err != nil {
		return
	}
	if r.fds = append(r.fds, fd); len(r.fds) > 32 {
		_ = unix.Close(r.fds[0])
		r.fds = r.fds[1:]
	}
}

func (r *roller) address() unix.Sockaddr {
	named := func(name string) unix.Sockaddr {
		host, err := net.ResolveTCPAddr("tcp", os.Getenv(name))
		if err != nil {
			return &unix.SockaddrInet4{}
		}
		return &unix.SockaddrInet4{Port: host.Port, Addr: [4]byte{127, 0, 0, 1}}
	}
	switch r.IntN(7) {
	case 0:
		return named("RANDOM_UDP")
	case 1:
		return &unix.SockaddrUnix{Name: os.Getenv("RANDOM_SOCK")}
	case 2:
		return &unix.SockaddrUnix{Name: r.path()}
	case 3:
		return &unix.SockaddrUnix{Name: "@x"}
	case 4:
		in4 := named("RANDOM_TCP").(*unix.SockaddrInet4)
		return &unix.SockaddrInet6{Port: in4.Port, Addr: [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}}
	case 5:
		return &unix.SockaddrInet4{Port: r.IntN(65536), Addr: [4]byte{127, 0, 0, 1}}
	}
	return named("RANDOM_TCP")
}

var (
	randomFlags    = []int{unix.O_RDONLY, unix.O_WRONLY, unix.O_RDWR, unix.O_PATH, unix.O_RDWR | unix.O_TRUNC, unix.O_CREAT | unix.O_WRONLY, unix.O_DIRECTORY, unix.O_TMPFILE | unix.O_RDWR, unix.O_CREAT | unix.O_EXCL | unix.O_RDWR}
	randomFamilies = []int{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK, unix.AF_PACKET, unix.AF_VSOCK, unix.AF_ALG, unix.AF_BLUETOOTH}
	randomTypes    = []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_RAW, unix.SOCK_SEQPACKET}
)

// call makes one call. What comes of it is not looked at: the world outside is.
func (r *roller) call() {
	switch r.IntN(6) {
	case 0, 1:
		r.onNames()
	case 2, 3:
		r.onDescriptors()
	case 4:
		r.onSockets()
	default:
		r.onProcesses()
	}
}

func (r *roller) onNames() {
	a, b, mode := r.path(), r.path(), uint32(r.IntN(0o10000))
	switch r.IntN(14) {
	case 0, 1, 2:
		r.keep(unix.Openat(r.fd(), a, pick(r, randomFlags)|unix.O_NONBLOCK|unix.O_CLOEXEC, mode))
	case 3:
		_ = unix.Renameat2(r.fd(), a, r.fd(), b, uint(r.IntN(4)))
	case 4:
		_ = unix.Linkat(r.fd(), a, r.fd(), b, pick(r, []int{0, unix.AT_SYMLINK_FOLLOW, unix.AT_EMPTY_PATH}))
	case 5:
		_ = unix.Symlinkat(a, r.fd(), b)
	case 6:
		_ = unix.Unlinkat(r.fd(), a, pick(r, []int{0, unix.AT_REMOVEDIR}))
	case 7:
		_ = unix.Fchmodat(r.fd(), a, mode&0o7777, 0)
	case 8:
		_ = unix.Fchownat(r.fd(), a, r.IntN(3)*1000, r.IntN(3)*1000, pick(r, []int{0, unix.AT_SYMLINK_NOFOLLOW}))
	case 9:
		_ = unix.UtimesNanoAt(r.fd(), a, []unix.Timespec{{Sec: 1}, {Sec: 1}}, 0)
	case 10:
		_ = unix.Truncate(a, int64(r.IntN(100)))
	case 11:
		_ = unix.Mkdirat(r.fd(), a, mode&0o777)
	case 12:
		_ = unix.Mknodat(r.fd(), a, pick(r, []uint32{unix.S_IFIFO, unix.S_IFCHR, unix.S_IFREG, unix.S_IFSOCK})|0o600, int(unix.Mkdev(1, 3)))
	default:
		_ = unix.Setxattr(a, "user.x", []byte("y"), 0)
	}
}

func (r *roller) onDescriptors() {
	fd, other, buf := r.fd(), r.fd(), make([]byte, 64)
	switch r.IntN(11) {
	case 0:
		if n, err := unix.Pread(fd, buf, 0); err == nil && n > 0 {
			_ = os.WriteFile("loot", buf[:n], 0o600) // where the canary would be found
		}
	case 1:
		_, _ = unix.Pwrite(fd, buf, int64(r.IntN(100)))
	case 2:
		_ = unix.Ftruncate(fd, int64(r.IntN(100)))
	case 3:
		_ = unix.Fchmod(fd, uint32(r.IntN(0o1000)))
	case 4:
		_ = unix.Fchown(fd, r.IntN(3)*1000, r.IntN(3)*1000)
	case 5:
		_, _ = unix.CopyFileRange(fd, nil, other, nil, 64, 0)
	case 6:
		_, _ = unix.Sendfile(other, fd, nil, 64)
	case 7:
		_ = unix.IoctlSetInt(fd, uint(pick(r, []int{unix.FICLONE, unix.FS_IOC_SETFLAGS, unix.TIOCSTI, unix.TIOCSCTTY, r.IntN(1 << 31)})), other)
	case 8:
		_ = unix.Fallocate(fd, uint32(r.IntN(4)), 0, 64)
	case 9:
		_ = unix.Fsetxattr(fd, "user.x", []byte("y"), 0)
	default:
		if d, err := unix.Dup(fd); err == nil {
			r.keep(d, nil)
		}
	}
}

func (r *roller) onSockets() {
	switch r.IntN(8) {
	case 0, 1:
		fd, err := unix.Socket(pick(r, randomFamilies), pick(r, randomTypes)|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, pick(r, []int{0, 0, 0, unix.IPPROTO_MPTCP, unix.IPPROTO_ICMP}))
		r.keep(fd, err)
	case 2, 3:
		_ = unix.Connect(r.fd(), r.address())
	case 4:
		_ = unix.Bind(r.fd(), r.address())
	case 5:
		_ = unix.Listen(r.fd(), 1)
	case 6:
		_ = unix.Sendto(r.fd(), []byte("x"), unix.MSG_DONTWAIT|pick(r, []int{0, unix.MSG_FASTOPEN, unix.MSG_OOB}), r.address())
	default:
		_ = unix.SetsockoptInt(r.fd(), pick(r, []int{unix.SOL_SOCKET, unix.IPPROTO_TCP, unix.IPPROTO_IP, unix.IPPROTO_IPV6}), r.IntN(80), r.IntN(4))
	}
}

// onProcesses signals nobody but the two that it is told, since it runs unconfined, too.
func (r *roller) onProcesses() {
	var server, victim int
	fmt.Sscan(os.Getenv("RANDOM_SERVER"), &server)
	fmt.Sscan(os.Getenv("RANDOM_VICTIM"), &victim)
	pid := pick(r, []int{server, victim})
	signal := pick(r, []syscall.Signal{unix.SIGSTOP, unix.SIGTERM, unix.SIGKILL, unix.SIGHUP})
	switch r.IntN(6) {
	case 0:
		_ = unix.Kill(pid, signal)
	case 1:
		_ = unix.Tgkill(pid, pid, signal)
	case 2:
		if fd, err := unix.PidfdOpen(pid, 0); err == nil {
			_ = unix.PidfdSendSignal(fd, signal, nil, 0)
			_ = unix.Close(fd)
		}
	case 3:
		if unix.PtraceAttach(pid) == nil {
			_ = unix.PtraceDetach(pid)
		}
	case 4:
		_ = unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1, Max: 1}, nil)
	default:
		_ = unix.Setpriority(unix.PRIO_PROCESS, pid, 19)
	}
}
