//go:build amd64 || arm64

package seccomp

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

const btrfsSubvolumeCreate = 0x5000940e // BTRFS_IOC_SUBVOL_CREATE

// interpret runs a filter as the kernel does and returns its answer and the
// steps it took.
func interpret(t *testing.T, code []unix.SockFilter, arch, nr uint32, args ...uint64) (answer uint32, steps int) {
	t.Helper()
	data := make([]byte, 64)
	binary.LittleEndian.PutUint32(data[offNr:], nr)
	binary.LittleEndian.PutUint32(data[offArch:], arch)
	for i, a := range args {
		binary.LittleEndian.PutUint64(data[offArgs+8*i:], a)
	}
	var acc uint32
	for pc := 0; pc < len(code); pc++ {
		steps++
		in := code[pc]
		jump := func(taken bool) {
			if taken {
				pc += int(in.Jt)
			} else {
				pc += int(in.Jf)
			}
		}
		switch in.Code {
		case opLoad:
			acc = binary.LittleEndian.Uint32(data[in.K:])
		case OpAnd:
			acc &= in.K
		case OpJeq:
			jump(acc == in.K)
		case opJge:
			jump(acc >= in.K)
		case opJgt:
			jump(acc > in.K)
		case OpJset:
			jump(acc&in.K != 0)
		case OpJump:
			pc += int(in.K)
		case OpRet:
			return in.K, steps
		default:
			t.Fatalf("unknown instruction %#x", in.Code)
		}
	}
	t.Fatal("the filter has no end")
	return 0, 0
}

func TestFilter(t *testing.T) {
	here := Options{broker: true, scoped: true, truncate: true}
	online, inject, old, deaf, gated := here, here, here, here, here
	gated.Datagrams = true
	online.network, inject.inject, deaf.broker = true, true, false
	old.scoped, old.truncate = false, false
	errno := retErrno
	const minus1 = uint64(^uint32(0))
	for _, tt := range []struct {
		name string
		o    Options
		nr   uint32
		args []uint64
		want uint32
	}{
		{"ordinary", here, unix.SYS_READ, nil, retAllow},
		{"future", here, unix.SYS_RSEQ_SLICE_YIELD + 1, nil, errno(unix.ENOSYS)},
		{"x32", here, 0x40000000 | unix.SYS_READ, nil, errno(unix.ENOSYS)},
		{"tcp", here, unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC, 0}, retAllow},
		{"tcp6", here, unix.SYS_SOCKET, []uint64{unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_TCP}, retAllow},
		{"tcp, high word of the argument", here, unix.SYS_SOCKET, []uint64{1<<32 | unix.AF_INET, unix.SOCK_STREAM, 0}, retAllow},
		{"tcp, made by the broker", inject, unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM, 0}, retNotify},
		{"mptcp", online, unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM, ProtoMPTCP}, retNotify},
		{"udp", here, unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_DGRAM, 0}, retNotify},
		{"udp, nobody to ask", deaf, unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_DGRAM, 0}, errno(unix.EACCES)},
		{"udp, network open", online, unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_DGRAM, 0}, retAllow},
		{"raw, network open", online, unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_RAW, 1}, retNotify},
		{"unix", here, unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_STREAM, 0}, retAllow},
		{"unix datagrams", online, unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM, 0}, retNotify},
		{"route", here, unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, retAllow},
		{"diag", here, unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_SOCK_DIAG}, retNotify},
		{"posix queue", here, unix.SYS_MQ_OPEN, nil, retNotify},
		{"posix queue, nobody to ask", deaf, unix.SYS_MQ_UNLINK, nil, errno(unix.EACCES)},
		{"pair", here, unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_STREAM, 0}, retAllow},
		{"datagram pair", here, unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM | unix.SOCK_NONBLOCK, 0}, retNotify},
		{"datagram pair, nobody to ask", deaf, unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM, 0}, errno(unix.EACCES)},
		{"send a message", gated, unix.SYS_SENDMSG, nil, retNotify},
		{"send a message, network open", online, unix.SYS_SENDMSG, nil, retAllow},
		{"send messages, fast", gated, unix.SYS_SENDMMSG, []uint64{3, 0, 1, unix.MSG_FASTOPEN}, errno(unix.EOPNOTSUPP)},
		{"receive messages", gated, unix.SYS_RECVMMSG, nil, retNotify},
		{"send", here, unix.SYS_SENDTO, []uint64{3, 0, 0, unix.MSG_NOSIGNAL}, retAllow},
		{"fast open", here, unix.SYS_SENDTO, []uint64{3, 0, 0, unix.MSG_FASTOPEN | unix.MSG_NOSIGNAL}, errno(unix.EOPNOTSUPP)},
		{"fast open, with an address", gated, unix.SYS_SENDTO, []uint64{3, 0, 0, unix.MSG_FASTOPEN, 0x1000, 16}, errno(unix.EOPNOTSUPP)},
		{"send to an address", here, unix.SYS_SENDTO, []uint64{3, 0, 0, 0, 0x1000, 16}, retAllow},
		{"send to an address, behind a gate", gated, unix.SYS_SENDTO, []uint64{3, 0, 0, 0, 0x1000, 16}, retNotify},
		{"send, behind a gate", gated, unix.SYS_SENDTO, []uint64{3, 0, 0, unix.MSG_NOSIGNAL}, retAllow},
		{"receive, behind a gate", gated, unix.SYS_RECVFROM, []uint64{3, 0, 0, 0}, retAllow},
		{"receive from, behind a gate", gated, unix.SYS_RECVFROM, []uint64{3, 0, 0, 0, 0x1000, 0x2000}, retNotify},
		{"udp, behind a gate", gated, unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_DGRAM, 0}, retNotify},
		{"by a device, behind a gate", gated, unix.SYS_SETSOCKOPT, []uint64{3, unix.SOL_SOCKET, unix.SO_BINDTODEVICE}, errno(unix.ENOPROTOOPT)},
		{"by a header, behind a gate", gated, unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_IPV6, unix.IPV6_RTHDR}, retNotify},
		{"no delay, behind a gate", gated, unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_TCP, unix.TCP_NODELAY}, retAllow},
		{"no delay", here, unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_TCP, unix.TCP_NODELAY}, retAllow},
		{"reuse", here, unix.SYS_SETSOCKOPT, []uint64{3, 7<<32 | unix.SOL_SOCKET, unix.SO_REUSEADDR}, retAllow},
		{"last of a list", here, unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_IPV6, unix.IPV6_RECVHOPLIMIT}, retAllow},
		{"route answers in full", here, unix.SYS_SETSOCKOPT, []uint64{3, unix.SOL_NETLINK, unix.NETLINK_EXT_ACK}, retAllow},
		{"by a device", here, unix.SYS_SETSOCKOPT, []uint64{3, unix.SOL_SOCKET, unix.SO_BINDTODEVICE}, errno(unix.ENOPROTOOPT)},
		{"by a device, network open", online, unix.SYS_SETSOCKOPT, []uint64{3, unix.SOL_SOCKET, unix.SO_BINDTODEVICE}, retAllow},
		{"by a header", here, unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_IPV6, unix.IPV6_RTHDR}, errno(unix.ENOPROTOOPT)},
		{"by a header, network open", online, unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_IPV6, unix.IPV6_RTHDR}, errno(unix.ENOPROTOOPT)},
		{"the broker's mark", here, unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_IP, unix.IP_FREEBIND}, errno(unix.ENOPROTOOPT)},
		{"another protocol", here, unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_UDP, 1}, errno(unix.ENOPROTOOPT)},
		{"trace", here, unix.SYS_PTRACE, []uint64{unix.PTRACE_ATTACH, 5, 0, 0}, retAllow},
		{"trace, with options", here, unix.SYS_PTRACE, []uint64{unix.PTRACE_SETOPTIONS, 5, 0, unix.PTRACE_O_EXITKILL | unix.PTRACE_O_TRACECLONE}, retAllow},
		{"write into who is traced", here, unix.SYS_PTRACE, []uint64{unix.PTRACE_POKEDATA, 5, 0x1000, unix.PTRACE_O_TRACEEXIT}, retAllow},
		{"trace to the exit", here, unix.SYS_PTRACE, []uint64{unix.PTRACE_SEIZE, 5, 0, unix.PTRACE_O_TRACEEXIT | unix.PTRACE_O_TRACEEXEC}, errno(unix.EINVAL)},
		{"trace to the exit, later", here, unix.SYS_PTRACE, []uint64{unix.PTRACE_SETOPTIONS, 5, 0, unix.PTRACE_O_TRACEEXIT}, errno(unix.EINVAL)},
		{"fork", here, unix.SYS_CLONE, []uint64{uint64(unix.SIGCHLD)}, retAllow},
		{"thread", here, unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_THREAD | unix.CLONE_SIGHAND}, retAllow},
		{"namespace", here, unix.SYS_CLONE, []uint64{unix.CLONE_NEWUSER | uint64(unix.SIGCHLD)}, retNotify},
		{"sibling", here, unix.SYS_CLONE, []uint64{unix.CLONE_PARENT}, errno(unix.EPERM)},
		{"clone3", here, unix.SYS_CLONE3, nil, errno(unix.ENOSYS)},
		{"unshare files", here, unix.SYS_UNSHARE, []uint64{unix.CLONE_FILES}, retAllow},
		{"unshare net", here, unix.SYS_UNSHARE, []uint64{unix.CLONE_NEWNET}, retNotify},
		{"ioctl", here, unix.SYS_IOCTL, []uint64{0, unix.TCGETS}, retAllow},
		{"tiocsti", here, unix.SYS_IOCTL, []uint64{0, unix.TIOCSTI}, errno(unix.EPERM)},
		{"tiocsti, high word", here, unix.SYS_IOCTL, []uint64{0, 1<<32 | unix.TIOCSTI}, errno(unix.EPERM)},
		{"ioctl, high word", here, unix.SYS_IOCTL, []uint64{0, 1<<32 | unix.TIOCGWINSZ}, retAllow},
		{"share blocks", here, unix.SYS_IOCTL, []uint64{0, unix.FICLONE}, retAllow},
		{"share blocks of a file open to read", here, unix.SYS_IOCTL, []uint64{0, unix.FIDEDUPERANGE}, errno(unix.ENOTTY)},
		{"inode flags", here, unix.SYS_IOCTL, []uint64{0, unix.FS_IOC_SETFLAGS}, errno(unix.EOPNOTSUPP)},
		{"console", here, unix.SYS_IOCTL, []uint64{0, unix.TIOCLINUX}, errno(unix.EPERM)},
		{"make a subvolume", here, unix.SYS_IOCTL, []uint64{0, btrfsSubvolumeCreate}, errno(unix.ENOTTY)},
		{"lock", here, unix.SYS_FCNTL, []uint64{0, unix.F_OFD_SETLKW}, retAllow},
		{"lease", here, unix.SYS_FCNTL, []uint64{0, unix.F_SETLEASE, unix.F_WRLCK}, errno(unix.EAGAIN)},
		{"delegation", here, unix.SYS_FCNTL, []uint64{0, unix.F_SETDELEG}, errno(unix.EINVAL)},
		{"hint", here, unix.SYS_FCNTL, []uint64{0, unix.F_SET_RW_HINT}, errno(unix.EINVAL)},
		{"owner", here, unix.SYS_FCNTL, []uint64{0, unix.F_SETOWN, 5}, retAllow},
		{"owner, the starter", here, unix.SYS_FCNTL, []uint64{0, unix.F_SETOWN, 4242}, errno(unix.EPERM)},
		{"owner, unscoped", old, unix.SYS_FCNTL, []uint64{0, unix.F_SETOWN, 5}, errno(unix.EPERM)},
		{"owner of another kind", here, unix.SYS_FCNTL, []uint64{0, unix.F_SETOWN_EX}, errno(unix.EINVAL)},
		{"pair of another family", here, unix.SYS_SOCKETPAIR, []uint64{unix.AF_TIPC, unix.SOCK_STREAM, 0}, errno(unix.EACCES)},
		{"kill", here, unix.SYS_KILL, []uint64{77, 9}, retNotify},
		{"kill own group", here, unix.SYS_KILL, []uint64{0, 9}, retAllow},
		{"kill all", here, unix.SYS_KILL, []uint64{minus1, 9}, retAllow},
		{"kill all, unscoped", old, unix.SYS_KILL, []uint64{minus1, 9}, retNotify},
		{"kill the starter", here, unix.SYS_KILL, []uint64{4242, 9}, errno(unix.EPERM)},
		{"tgkill the starter", here, unix.SYS_TGKILL, []uint64{1, 4242, 9}, errno(unix.EPERM)},
		{"tgkill the starter, urgently", here, unix.SYS_TGKILL, []uint64{1, 4242, uint64(unix.SIGURG)}, errno(unix.EPERM)},
		{"tgkill", here, unix.SYS_TGKILL, []uint64{1, 5, 9}, retAllow},
		{"tgkill, unscoped", old, unix.SYS_TGKILL, []uint64{1, 5, 9}, retNotify},
		{"preempt, unscoped", old, unix.SYS_TGKILL, []uint64{1, 5, uint64(unix.SIGURG)}, retAllow},
		{"own limits", here, unix.SYS_PRLIMIT64, []uint64{0, 7}, retAllow},
		{"other limits", here, unix.SYS_PRLIMIT64, []uint64{9, 7}, retNotify},
		{"own priority", here, unix.SYS_SETPRIORITY, []uint64{unix.PRIO_PROCESS, 0}, retAllow},
		{"user's priority", here, unix.SYS_SETPRIORITY, []uint64{unix.PRIO_USER, 0}, retNotify},
		{"open", here, unix.SYS_OPENAT, []uint64{0, 0, unix.O_CREAT | unix.O_WRONLY, 0o644}, retAllow},
		{"open, junk for a mode", here, unix.SYS_OPENAT, []uint64{0, 0, unix.O_RDONLY | unix.O_DIRECTORY, 0o7777}, retAllow},
		{"as a compiler reads", here, unix.SYS_OPENAT, []uint64{0, 0, unix.O_RDONLY | unix.O_NOCTTY}, retAllow},
		{"a terminal to read", here, unix.SYS_OPENAT, []uint64{0, 0, unix.O_RDONLY | unix.O_NOCTTY | unix.O_NONBLOCK}, retNotify},
		{"a terminal", here, unix.SYS_OPENAT, []uint64{0, 0, unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC}, retNotify},
		{"create set-id", here, unix.SYS_OPENAT, []uint64{0, 0, unix.O_CREAT | unix.O_WRONLY, 0o4755}, errno(unix.EPERM)},
		{"truncate", here, unix.SYS_TRUNCATE, nil, retAllow},
		{"truncate, unknown to landlock", old, unix.SYS_TRUNCATE, nil, errno(unix.EACCES)},
		{"open to truncate", old, unix.SYS_OPENAT, []uint64{0, 0, unix.O_RDONLY | unix.O_TRUNC}, errno(unix.EACCES)},
		{"open neither to read nor to write", here, unix.SYS_OPENAT, []uint64{0, 0, unix.O_ACCMODE | unix.O_NOCTTY}, errno(unix.EACCES)},
		{"open neither to read nor to write, and truncate", old, unix.SYS_OPENAT, []uint64{0, 0, unix.O_ACCMODE | unix.O_TRUNC}, errno(unix.EACCES)},
		{"write and truncate", old, unix.SYS_OPENAT, []uint64{0, 0, unix.O_WRONLY | unix.O_TRUNC}, retAllow},
		{"chmod", here, unix.SYS_FCHMODAT, nil, retNotify},
		{"chmod, nobody to ask", deaf, unix.SYS_FCHMODAT, nil, errno(unix.EACCES)},
	} {
		code := ForThread(Build(tt.o), 4242)
		if got, _ := interpret(t, code, auditArch, tt.nr, tt.args...); got != tt.want {
			t.Errorf("%s: %#x, want %#x", tt.name, got, tt.want)
		}
	}
	if got, _ := interpret(t, Build(here), unix.AUDIT_ARCH_I386, 1); got != retErrno(unix.ENOSYS) {
		t.Errorf("another architecture: %#x", got)
	}
}

// TestFilterIsShort: the kernel runs the filter for every number when it is
// installed, so the way to an answer has to be short, and no number may have two
// rules.
func TestFilterIsShort(t *testing.T) {
	code := Build(Options{broker: true, scoped: true, truncate: true})
	for nr := range uint32(600) {
		if _, steps := interpret(t, code, auditArch, nr, 1, 1, 1, 1, 1, 1); steps > 80 {
			t.Errorf("system call %d takes %d steps", nr, steps)
		}
	}
	if len(code) > 4096 {
		t.Errorf("%d instructions are more than the kernel takes", len(code))
	}
}

// TestOneOf compares the search among values with a plain one.
func TestOneOf(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for n := range 120 {
		in := make([]uint32, n+1)
		for i := range in {
			in[i] = rng.Uint32N(300)
		}
		code := assemble(auditArch, 9, []rule{{nr: 1, otherwise: retErrno(unix.EPERM), clauses: []clause{
			{when: []cond{{arg: 1, in: in}, {arg: 0, val: 7}}, then: retNotify}}}})
		for v := range uint32(302) {
			want := retErrno(unix.EPERM)
			if slices.Contains(in, v) {
				want = retNotify
			}
			if got, _ := interpret(t, code, auditArch, 1, 7, uint64(v)); got != want {
				t.Fatalf("%d in %v: %#x, want %#x", v, in, got, want)
			}
		}
	}
}

// TestAssembleDecidesAsTheRulesSay compares the assembled search with a plain one.
func TestAssembleDecidesAsTheRulesSay(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var rules []rule
		for _, nr := range rng.Perm(400)[:rng.IntN(200)] {
			rules = append(rules, rule{nr: uint32(nr), otherwise: retErrno(unix.EPERM), clauses: []clause{
				{when: []cond{{arg: 0, mask: 0xff, val: 3}, {arg: 1, mask: 4, any: true, not: nr%2 == 0}}, then: retNotify}}})
		}
		code := assemble(auditArch, 450, rules)
		byNr := map[uint32]bool{}
		for _, r := range rules {
			byNr[r.nr] = true
		}
		for range 100 {
			nr, a, b := uint32(rng.IntN(500)), rng.Uint64N(1024), rng.Uint64N(8)
			want := uint32(retAllow)
			switch {
			case nr > 450:
				want = retErrno(unix.ENOSYS)
			case byNr[nr] && a&0xff == 3 && (b&4 != 0) != (nr%2 == 0):
				want = retNotify
			case byNr[nr]:
				want = retErrno(unix.EPERM)
			}
			if got, _ := interpret(t, code, auditArch, nr, a, b); got != want {
				t.Fatalf("%d(%d, %d): %#x, want %#x", nr, a, b, got, want)
			}
		}
	}
}

func TestRulesAreUnique(t *testing.T) {
	o := Options{broker: true}
	seen := map[uint32]bool{}
	for _, part := range [][]rule{refusedRules(), brokeredRules(), socketRules(o), signalRules(o),
		otherTaskRules(), creationRules(o), legacyRules()} {
		for _, r := range part {
			if seen[r.nr] {
				t.Errorf("system call %d has two rules", r.nr)
			}
			seen[r.nr] = true
		}
	}
}
