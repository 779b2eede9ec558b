//go:build amd64 || arm64

package confine

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/seccomp"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// A probe is one way out. try runs in a process of its own and returns nil when
// it got out.
type escape struct {
	try  func() error
	root bool // succeeds unconfined for root only
}

// What the parent tells a probe.
func outside(name string) string { return filepath.Join(os.Getenv("PROBE_OUTSIDE"), name) }
func victim() int                { return number("PROBE_VICTIM") }
func number(name string) int {
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		panic(name + " is not set")
	}
	return n
}

func syscallErr(nr uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	_, _, e := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
	if e != 0 {
		return e
	}
	return nil
}

// exists tells "the kernel would have done it" from "the kernel refused": an
// argument error comes only after permission has been granted.
func exists(err error, good ...unix.Errno) error {
	for _, g := range good {
		if err == g {
			return nil
		}
	}
	return err
}

func withFD(path string, flags int, f func(fd int) error) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return f(fd)
}

// truncatedByOpen opens a file neither to read nor to write, which is asked of no wall
// but the user's rights, and has it emptied.
func truncatedByOpen(path string) error {
	err := withFD(path, unix.O_ACCMODE|unix.O_TRUNC, func(int) error { return nil })
	if info, e := os.Stat(path); e == nil && info.Size() == 0 {
		return nil
	}
	if err == nil {
		err = errors.New("it was opened, and has what it had")
	}
	return err
}

func socketOnly(domain, kind, proto int) func() error {
	return func() error {
		_, err := unix.Socket(domain, kind, proto)
		return err
	}
}

func dialTo(network, addrVar string) func() error {
	return func() error {
		conn, err := net.DialTimeout(network, os.Getenv(addrVar), 5*time.Second)
		if err != nil {
			return err
		}
		return conn.Close()
	}
}

func sendTo(sa unix.Sockaddr, domain, kind int) error {
	s, err := unix.Socket(domain, kind, 0)
	if err != nil {
		return err
	}
	return unix.Sendto(s, []byte("x"), 0, sa)
}

func inet(addrVar string) *unix.SockaddrInet4 {
	_, port, _ := net.SplitHostPort(os.Getenv(addrVar))
	n, _ := strconv.Atoi(port)
	return &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: n}
}

var probeTable = map[string]escape{
	"attack":     {try: attackAll},
	"steer":      {try: func() error { return ways[os.Getenv("PROBE_WAY")]() }},
	"pidfd-own":  {try: pidfdOwn},
	"terminals":  {try: openTerminals},
	"connects":   {try: connectMany},
	"hang":       {try: hangConnects},
	"ask":        {try: askForModes},
	"write-long": {try: keepWriting},
	"pending":    {try: connectLater},
	"full":       {try: connectFull},
	"usurp":      {try: usurp},
	"both":       {try: listenTwice},
	"by-name":    {try: connectByName},
	"fill":       {try: takeAll},
	"patient":    {try: connectPatiently},
	"loopback":   {try: connectLoopback},
	"dial":       {try: func() error { _, err := net.Dial(os.Getenv("PROBE_NETWORK"), os.Getenv("PROBE_ADDRESS")); return err }},
	"disconnect": {try: listenDisconnected},
	"inherited":  {try: func() error { _, err := unix.Read(number("PROBE_FD"), make([]byte, 6)); return err }},
	// the end
	"exit-stop-seize": {try: seizeForExit},
	"exit-stop-set":   {try: setForExit(unix.PTRACE_SETOPTIONS)},
	"exit-stop-old":   {try: setForExit(0x15)}, // where the architecture has it
	// files
	"read":             {try: func() error { _, err := os.ReadFile(outside("secret")); return err }},
	"list":             {try: func() error { _, err := os.ReadDir(outside("")); return err }},
	"write":            {try: func() error { return withFD(outside("secret"), unix.O_WRONLY, func(int) error { return nil }) }},
	"create":           {try: func() error { return os.WriteFile(outside("new"), nil, 0o600) }},
	"truncate":         {try: func() error { return unix.Truncate(outside("secret"), 1) }},
	"open-truncate":    {try: func() error { return withFD(outside("secret"), unix.O_TRUNC, func(int) error { return nil }) }},
	"open-neither":     {try: func() error { return withFD(outside("secret"), unix.O_ACCMODE, func(int) error { return nil }) }},
	"truncate-neither": {try: func() error { return truncatedByOpen(outside("secret")) }},
	"unlink":           {try: func() error { return unix.Unlink(outside("secret")) }},
	"mkdir":            {try: func() error { return unix.Mkdir(outside("d"), 0o755) }},
	"rmdir":            {try: func() error { return unix.Rmdir(outside("empty")) }},
	"rename-out":       {try: func() error { _ = os.WriteFile("mine", nil, 0o600); return os.Rename("mine", outside("theirs")) }},
	"rename-in":        {try: func() error { return os.Rename(outside("secret"), "stolen") }},
	"link-in":          {try: func() error { return os.Link(outside("secret"), "linked") }},
	"link-out":         {try: func() error { _ = os.WriteFile("mine", nil, 0o600); return os.Link("mine", outside("theirs")) }},
	"symlink-out":      {try: func() error { return os.Symlink("x", outside("link")) }},
	"through-link":     {try: func() error { _ = os.Symlink(outside("secret"), "ln"); _, err := os.ReadFile("ln"); return err }},
	"fifo":             {try: func() error { return unix.Mkfifo(outside("fifo"), 0o600) }},
	"chmod":            {try: func() error { return unix.Chmod(outside("secret"), 0o600) }},
	"chmod-link":       {try: func() error { _ = os.Symlink(outside("secret"), "cl"); return unix.Chmod("cl", 0o600) }},
	"chmod-dotdot":     {try: func() error { return unix.Chmod("../outside/secret", 0o600) }},
	"fchmodat2":        {try: func() error { return unix.Fchmodat(unix.AT_FDCWD, outside("secret"), 0o600, unix.AT_SYMLINK_NOFOLLOW) }},
	"fchmod":           {try: func() error { return onUsr(func(fd int) error { return unix.Fchmod(fd, 0o755) }) }, root: true},
	"chown":            {try: func() error { return unix.Chown(outside("secret"), os.Getuid(), os.Getgid()) }},
	"lchown":           {try: func() error { return unix.Lchown(outside("secret"), os.Getuid(), os.Getgid()) }},
	"fchown":           {try: func() error { return onUsr(func(fd int) error { return unix.Fchown(fd, 0, 0) }) }, root: true},
	"utimes":           {try: func() error { return unix.UtimesNano(outside("secret"), make([]unix.Timespec, 2)) }},
	"futimens":         {try: futimens, root: true},
	"xattr":            {try: func() error { return unix.Setxattr(outside("secret"), "user.x", []byte("y"), 0) }},
	"inode-flags":      {try: func() error { return onUsr(setFlagsAsTheyAre) }, root: true},
	"inode-generation": {try: setGeneration},
	"lease":            {try: lease},
	"set-id-create":    {try: func() error { return withFD2("sid", unix.O_CREAT|unix.O_WRONLY, 0o4755) }},
	"set-id-chmod":     {try: func() error { _ = os.WriteFile("s", nil, 0o755); return unix.Chmod("s", 0o4755) }},
	"passwd":           {try: func() error { _, err := os.ReadFile("/etc/passwd"); return err }},
	"core-pattern": {try: func() error {
		return withFD("/proc/sys/kernel/core_pattern", unix.O_WRONLY, func(int) error { return nil })
	}, root: true},
	"device":         {try: func() error { return unix.Mknod("dev", unix.S_IFBLK|0o600, int(unix.Mkdev(254, 0))) }, root: true},
	"open-by-handle": {try: openByHandle, root: true},

	// sockets
	"unix-stream": {try: dialTo("unix", "PROBE_SOCK")},
	"unix-dgram": {try: func() error {
		return sendTo(&unix.SockaddrUnix{Name: outside("dgram.sock")}, unix.AF_UNIX, unix.SOCK_DGRAM)
	}},
	"unix-pair": {try: func() error { return unixPair(outside("dgram.sock")) }},
	"unix-bind": {try: func() error { _, err := net.Listen("unix", outside("made.sock")); return err }},
	"unix-link": {try: func() error {
		_ = os.Symlink(os.Getenv("PROBE_SOCK"), "s.sock")
		_, err := net.Dial("unix", "s.sock")
		return err
	}},
	"abstract": {try: dialTo("unix", "PROBE_ABSTRACT")},
	"abstract-send": {try: func() error {
		return sendTo(&unix.SockaddrUnix{Name: os.Getenv("PROBE_ABSTRACT") + "d"}, unix.AF_UNIX, unix.SOCK_DGRAM)
	}},
	"abstract-by-path": {try: func() error { // a path that looks like the name in what package unix tells
		return posing(unix.SOCK_STREAM, append([]byte{unix.AF_UNIX, 0}, os.Getenv("PROBE_ABSTRACT")+"\x00"...))
	}},
	"abstract-by-longer":     {try: func() error { return posing(unix.SOCK_STREAM, append(abstractAddress(), "\x00x"...)) }},
	"abstract-by-other-kind": {try: func() error { return posing(unix.SOCK_SEQPACKET, abstractAddress()) }},
	"netlink-connect": {try: func() error {
		return steerNetlink(unix.Connect, unix.SockaddrNetlink{Pid: uint32(number("PROBE_NETLINK"))})
	}, root: true},
	"netlink-group": {try: func() error { return steerNetlink(unix.Connect, unix.SockaddrNetlink{Groups: 1}) }, root: true},
	"netlink-bind": {try: func() error { // a group that only administrators may listen to
		return steerNetlink(unix.Bind, unix.SockaddrNetlink{Groups: 1 << (unix.RTNLGRP_IPV4_MROUTE_R - 1)})
	}, root: true},
	"tcp":          {try: dialTo("tcp", "PROBE_TCP")},
	"tcp6-mapped":  {try: tcpMapped},
	"tcp-listen":   {try: listenEverywhere},
	"tcp-autobind": {try: autobind},
	"udp":          {try: sendUDP}, // on loopback it comes to the session's own: TestDatagramsStayInside
	"fast-open":    {try: fastOpen},
	"mptcp":        {try: socketOnly(unix.AF_INET, unix.SOCK_STREAM, seccomp.ProtoMPTCP)},
	"raw":          {try: socketOnly(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP), root: true},
	"packet":       {try: socketOnly(unix.AF_PACKET, unix.SOCK_RAW, 0), root: true},
	"vsock":        {try: socketOnly(unix.AF_VSOCK, unix.SOCK_STREAM, 0)},
	"alg":          {try: socketOnly(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)},
	"uevent":       {try: socketOnly(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT)},
	"io-uring": {try: func() error {
		var p [120]byte
		return syscallErr(unix.SYS_IO_URING_SETUP, 4, uintptr(unsafe.Pointer(&p)))
	}},

	"inotify":       {try: func() error { return watchPath(outside("")) }},
	"inotify-names": {try: func() error { _ = os.Symlink(outside(""), "w"); return watchPath("w") }},

	// System V objects of others
	"message-queue": {try: func() error { return otherIPC(unix.SYS_MSGGET, "PROBE_QUEUE", 0o600) }},
	"semaphore":     {try: func() error { return otherIPC(unix.SYS_SEMGET, "PROBE_SEMAPHORE", 1, 0o600) }},
	"shared-memory": {try: func() error { return otherIPC(unix.SYS_SHMGET, "PROBE_SHARED", 64, 0o600) }},
	"message-send": {try: func() error {
		var message [3]uintptr
		message[0] = 1
		return syscallErr(unix.SYS_MSGSND, uintptr(number("PROBE_QUEUE")), ptr(&message), 8, 0o4000)
	}},
	"semaphore-raise": {try: func() error {
		operation := [3]int16{0, 1, 0}
		return syscallErr(unix.SYS_SEMOP, uintptr(number("PROBE_SEMAPHORE")), ptr(&operation), 1)
	}},
	"shared-attach": {try: func() error { return syscallErr(unix.SYS_SHMAT, uintptr(number("PROBE_SHARED"))) }},

	// POSIX message queues
	"posix-queue":        {try: func() error { return openQueue(os.Getenv("PROBE_POSIX_QUEUE"), unix.O_RDWR) }},
	"posix-queue-unlink": {try: func() error { return unlinkQueue(os.Getenv("PROBE_POSIX_QUEUE")) }},
	"posix-queue-create": {try: func() error { // Landlock refuses to open what stays behind
		mine := os.Getenv("PROBE_POSIX_QUEUE") + "-left"
		_ = openQueue(mine, unix.O_RDWR|unix.O_CREAT)
		return unlinkQueue(mine)
	}},

	// other processes
	"environ": {try: func() error { _, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", victim())); return err }},
	"mem": {try: func() error {
		return withFD(fmt.Sprintf("/proc/%d/mem", victim()), unix.O_RDWR, func(int) error { return nil })
	}},
	"fd":           {try: func() error { _, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/0", victim())); return err }},
	"proc-root":    {try: func() error { _, err := os.Stat(fmt.Sprintf("/proc/%d/root/usr", victim())); return err }},
	"proc-cwd":     {try: func() error { _, err := os.Stat(fmt.Sprintf("/proc/%d/cwd/.", victim())); return err }},
	"ptrace":       {try: func() error { return ptraceSeize(victim()) }},
	"vm-read":      {try: vmRead},
	"pidfd-getfd":  {try: pidfdGetfd},
	"kill":         {try: func() error { return unix.Kill(victim(), unix.SIGCONT) }},
	"kill-group":   {try: func() error { return unix.Kill(-victim(), unix.SIGCONT) }},
	"tkill":        {try: func() error { return syscallErr(unix.SYS_TKILL, uintptr(victim()), uintptr(unix.SIGCONT)) }},
	"pidfd-signal": {try: func() error { return pidfdSignal(victim(), unix.SIGCONT) }},
	"sigqueue": {try: func() error {
		return syscallErr(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(victim()), uintptr(victim()), uintptr(unix.SIGCONT), uintptr(unsafe.Pointer(&[32]int32{0, 0, -1})))
	}},
	"sigio": {try: sigio},
	"prlimit": {try: func() error {
		var l unix.Rlimit
		if err := unix.Prlimit(victim(), unix.RLIMIT_CORE, nil, &l); err != nil {
			return err
		}
		return unix.Prlimit(victim(), unix.RLIMIT_CORE, &l, nil)
	}},
	"affinity": {try: func() error { var s unix.CPUSet; s.Set(0); return unix.SchedSetaffinity(victim(), &s) }},
	"nice":     {try: func() error { return unix.Setpriority(unix.PRIO_PROCESS, victim(), 5) }},

	// the kernel
	"mount":        {try: func() error { return mountHere() }, root: true},
	"chroot":       {try: func() error { return unix.Chroot(".") }, root: true},
	"unshare-user": {try: func() error { return onThread(func() error { return unix.Unshare(unix.CLONE_NEWUTS | unix.CLONE_FS) }) }, root: true},
	"clone-user":   {try: func() error { return exists(cloneWith(unix.CLONE_NEWUSER|unix.CLONE_THREAD), unix.EINVAL) }},
	"clone3":       {try: func() error { return exists(syscallErr(unix.SYS_CLONE3, 0, 0), unix.EINVAL, unix.EFAULT) }},
	"setns": {try: func() error {
		return withFD("/proc/self/ns/uts", unix.O_RDONLY, func(fd int) error { return unix.Setns(fd, 0) })
	}, root: true},
	"keyctl": {try: func() error { _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_PROCESS_KEYRING, true); return err }},
	"bpf":    {try: func() error { return exists(syscallErr(unix.SYS_BPF, 5, 0, 0), unix.EINVAL, unix.EFAULT, unix.E2BIG) }, root: true},
	"perf": {try: func() error {
		a := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{}))}
		_, err := unix.PerfEventOpen(&a, 0, -1, -1, 0)
		return err
	}, root: true},
	"userfaultfd": {try: func() error { return syscallErr(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|1) }},
	"fanotify":    {try: func() error { _, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF, 0); return err }, root: true},
	"tiocsti":     {try: func() error { return exists(pushInput(), unix.ENOTTY) }},
	"future": {try: func() error { // a call newer than the rules: the probe is that the filter answers, not the kernel
		if unix.Prctl(unix.PR_GET_SECCOMP, 0, 0, 0, 0) == nil && secompMode() != 0 {
			return exists(syscallErr(unix.SYS_RSEQ_SLICE_YIELD+100), 0)
		}
		return nil
	}},
}

func secompMode() int { n, _ := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0); return n }

func mountHere() error {
	if err := unix.Mkdir("mnt", 0o755); err != nil {
		return err
	}
	if err := unix.Mount("none", "mnt", "tmpfs", 0, ""); err != nil {
		return err
	}
	return unix.Unmount("mnt", 0)
}

// onUsr opens a readable program outside the workspace.
func onUsr(f func(fd int) error) error { return withFD("/usr/bin/env", unix.O_RDONLY, f) }

func withFD2(name string, flags int, mode uint32) error {
	fd, err := unix.Open(name, flags|unix.O_CLOEXEC, mode)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func futimens() error {
	return onUsr(func(fd int) error {
		return syscallErr(unix.SYS_UTIMENSAT, uintptr(fd), 0, 0, 0)
	})
}

func setFlagsAsTheyAre(fd int) error {
	flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
	if err != nil {
		return err
	}
	return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags)
}

func openByHandle() error {
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, outside("secret"), 0)
	if err != nil {
		return err
	}
	return withFD("/", unix.O_PATH|unix.O_DIRECTORY, func(fd int) error {
		root, err := unix.Open(".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			return err
		}
		_, err = unix.OpenByHandleAt(root, h, unix.O_RDONLY)
		return err
	})
}

func unixPair(name string) error {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	if err := unix.Sendto(p[0], []byte("x"), 0, &unix.SockaddrUnix{Name: name}); err != nil {
		return err
	}
	if n, _, err := unix.Recvfrom(p[1], make([]byte, 1), unix.MSG_DONTWAIT); err == nil && n == 1 {
		return errors.New("it came to the other end")
	}
	return nil
}

func sendUDP() error {
	at, err := netip.ParseAddr(os.Getenv("PROBE_OWN"))
	if err != nil {
		return err
	}
	return sendTo(&unix.SockaddrInet4{Addr: at.As4(), Port: 9}, unix.AF_INET, unix.SOCK_DGRAM)
}

func tcpMapped() error {
	s, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	to := &unix.SockaddrInet6{Port: inet("PROBE_TCP").Port}
	copy(to.Addr[10:], []byte{0xff, 0xff, 127, 0, 0, 1})
	return unix.Connect(s, to)
}

// listenEverywhere gets out when others can reach it, on any address.
func listenEverywhere() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if err := unix.Bind(s, &unix.SockaddrInet4{}); err != nil {
		return err
	}
	if err := unix.Listen(s, 1); err != nil {
		return err
	}
	return onLoopback(s)
}

func autobind() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if err := unix.Listen(s, 1); err != nil {
		return err
	}
	return onLoopback(s)
}

func onLoopback(s int) error {
	sa, err := unix.Getsockname(s)
	if err != nil {
		return err
	}
	if sa.(*unix.SockaddrInet4).Addr[0] == 127 {
		return errors.New("it listens on loopback only")
	}
	return nil
}

func fastOpen() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	return unix.Sendto(s, []byte("x"), unix.MSG_FASTOPEN, inet("PROBE_TCP"))
}

func ptraceSeize(pid int) error {
	return onThread(func() error { return syscallErr(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid), 0, 0) })
}

// onThread keeps what f does to its thread from the rest.
func onThread(f func() error) error {
	runtime.LockOSThread()
	return f()
}

// cloneWith asks for a thread with a namespace, which the kernel refuses as
// invalid when nobody refused it before.
func cloneWith(flags uintptr) error { return syscallErr(unix.SYS_CLONE, flags) }

func vmRead() error {
	b := make([]byte, 8)
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", victim()))
	if err != nil {
		return err
	}
	start, _, _ := strings.Cut(string(maps), "-")
	from, err := strconv.ParseUint(start, 16, 64)
	if err != nil {
		return err
	}
	if kernel.ReadMemory(victim(), from, b) == 0 {
		return unix.EPERM
	}
	return nil
}

func pidfdGetfd() error {
	fd, err := unix.PidfdOpen(victim(), 0)
	if err != nil {
		return err
	}
	_, err = unix.PidfdGetfd(fd, 0, 0)
	return err
}

// sigio has the kernel send the victim a signal when a socket is ready; whether
// that worked shows in the victim.
func sigio() error {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	const setsig = 10
	for _, c := range [][2]int{{unix.F_SETOWN, victim()}, {setsig, int(unix.SIGUSR1)}} {
		if _, err := unix.FcntlInt(uintptr(p[0]), c[0], c[1]); err != nil {
			return err
		}
	}
	if _, err := unix.FcntlInt(uintptr(p[0]), unix.F_SETFL, unix.O_ASYNC); err != nil {
		return err
	}
	if _, err := unix.Write(p[1], []byte("x")); err != nil {
		return err
	}
	for range 50 {
		time.Sleep(10 * time.Millisecond)
		if unix.Kill(victim(), 0) == unix.ESRCH || readState(victim()) == "Z" {
			return nil
		}
	}
	return errors.New("the signal did not arrive")
}

func readState(pid int) string {
	if p, ok := proc.Read(pid); ok && p.Dead {
		return "Z"
	}
	return ""
}
