//go:build amd64 || arm64

package seccomp

import (
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"golang.org/x/sys/unix"
)

const (
	newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWTIME
	SetIDBits   = unix.S_ISUID | unix.S_ISGID
	TypeMask    = 0xf // of socket(): the rest are flags
	ProtoMPTCP  = 262
	pidfdThread = unix.O_EXCL
)

// Options are what the rules depend on.
type Options struct {
	network   bool // the network is open
	Datagrams bool // UDP sockets are the broker's
	broker    bool // there is a listener; without one, brokered calls are refused
	inject    bool // sockets are made by the broker (it cannot duplicate them)
	scoped    bool // Landlock confines signals
	truncate  bool // Landlock confines truncation
}

// Build returns the filter of commands, with ownThread still open.
func Build(o Options) []unix.SockFilter {
	rules := make([]rule, 0, 128)
	for _, part := range [][]rule{
		refusedRules(), brokeredRules(), socketRules(o), optionRules(o), signalRules(o), otherTaskRules(),
		ipcRules(), creationRules(o), legacyRules(),
	} {
		rules = append(rules, part...)
	}
	if o.broker {
		rules = append(rules, readableRule)
	} else {
		withoutBroker(rules)
	}
	return assemble(auditArch, unix.SYS_RSEQ_SLICE_YIELD, rules)
}

// readableRule has programs that hide their memory, as ssh-agent and gpg-agent do,
// believe that they have: the broker, unless it is root's, could not read what they
// ask for, and would refuse it. Landlock keeps others than the session's own commands away.
var readableRule = rule{nr: unix.SYS_PRCTL, otherwise: retAllow, clauses: []clause{
	{when: []cond{{arg: 0, val: unix.PR_SET_DUMPABLE}, {arg: 1, val: 0}}, then: retErrno(0)}}}

// withoutBroker turns every question to the broker into a refusal.
func withoutBroker(rules []rule) {
	refuse := func(a *uint32) {
		if *a == retNotify {
			*a = retErrno(unix.EACCES)
		}
	}
	for i := range rules {
		refuse(&rules[i].otherwise)
		for j := range rules[i].clauses {
			refuse(&rules[i].clauses[j].then)
		}
	}
}

func all(answer uint32, nrs ...uint32) []rule {
	rules := make([]rule, len(nrs))
	for i, nr := range nrs {
		rules[i] = rule{nr: nr, otherwise: answer}
	}
	return rules
}

// refusedRules name what commands have no business with. Calls that programs
// merely try, to fall back on another, are refused silently; the others go
// through the broker so that the refusal is on record.
func refusedRules() []rule {
	rules := all(retErrno(unix.EPERM),
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_BPF,
		unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT,
		unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_ACCT)
	rules = append(rules, all(retNotify,
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_MOVE_MOUNT,
		unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_FSOPEN, unix.SYS_FSCONFIG,
		unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_SETNS, unix.SYS_CHROOT,
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
		unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE)...)
	// Extended attributes and inode flags are not Landlock's; programs take
	// "not supported" in their stride.
	rules = append(rules, all(retErrno(unix.EOPNOTSUPP),
		unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT,
		unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT,
		unix.SYS_FILE_SETATTR)...)
	return append(rules,
		rule{nr: unix.SYS_CLONE3, otherwise: retErrno(unix.ENOSYS)}, // its flags are out of a filter's sight
		rule{nr: unix.SYS_CLONE, otherwise: retAllow, clauses: []clause{
			{when: []cond{{arg: 0, mask: newNamespaces &^ unix.CLONE_NEWTIME, any: true}}, then: retNotify},
			{when: []cond{{arg: 0, mask: unix.CLONE_PARENT, any: true}}, then: retErrno(unix.EPERM)}}},
		rule{nr: unix.SYS_UNSHARE, otherwise: retAllow, clauses: []clause{
			{when: []cond{{arg: 0, mask: newNamespaces, any: true}}, then: retNotify}}},
		ioctlRule(), tracingRule())
}

// brokeredRules go to the broker, which does what is allowed by itself.
func brokeredRules() []rule {
	return all(retNotify,
		unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_CONNECT,
		unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2,
		unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT, unix.SYS_INOTIFY_ADD_WATCH)
}

// socketRules let through the sockets that the broker can judge by their
// addresses: streams. A datagram socket would name its target in every send.
func socketRules(o Options) []rule {
	allowed := uint32(retAllow)
	if o.inject {
		allowed = retNotify
	}
	domain := func(d uint32) cond { return cond{arg: 0, val: d} }
	kind := func(t uint32) cond { return cond{arg: 1, mask: TypeMask, val: t} }
	proto := func(p uint32) cond { return cond{arg: 2, val: p} }
	clauses := []clause{
		{when: []cond{domain(unix.AF_UNIX), kind(unix.SOCK_STREAM)}, then: allowed},
		{when: []cond{domain(unix.AF_UNIX), kind(unix.SOCK_SEQPACKET)}, then: allowed},
		{when: []cond{domain(unix.AF_NETLINK), proto(unix.NETLINK_ROUTE)}, then: retAllow},
	}
	for _, d := range []uint32{unix.AF_INET, unix.AF_INET6} {
		for _, p := range []uint32{0, unix.IPPROTO_TCP} {
			clauses = append(clauses, clause{when: []cond{domain(d), kind(unix.SOCK_STREAM), proto(p)}, then: allowed})
		}
		if o.network {
			for _, p := range []uint32{0, unix.IPPROTO_UDP, unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6} {
				clauses = append(clauses, clause{when: []cond{domain(d), kind(unix.SOCK_DGRAM), proto(p)}, then: allowed})
			}
		}
	}
	// Fast open would connect in a send.
	fastOpen := func(nr uint32, arg int) rule {
		return rule{nr: nr, otherwise: retAllow, clauses: []clause{
			{when: []cond{{arg: arg, mask: unix.MSG_FASTOPEN, any: true}}, then: retErrno(unix.EOPNOTSUPP)}}}
	}
	rules := []rule{
		{nr: unix.SYS_SOCKET, clauses: clauses, otherwise: retNotify},
		datagramPairRule(o),
		fastOpen(unix.SYS_SENDTO, 3), fastOpen(unix.SYS_SENDMSG, 2), fastOpen(unix.SYS_SENDMMSG, 3),
	}
	if o.Datagrams { // with an address, and what may have one out of a filter's sight
		addressed := clause{when: []cond{{arg: 4, val: 0, not: true}}, then: retNotify}
		rules[2].clauses = append(rules[2].clauses, addressed)
		rules = append(rules, rule{nr: unix.SYS_RECVFROM, otherwise: retAllow, clauses: []clause{addressed}})
		rules[3].otherwise, rules[4].otherwise = retNotify, retNotify
		rules = append(rules, all(retNotify, unix.SYS_RECVMSG, unix.SYS_RECVMMSG, unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME)...)
	}
	return rules
}

// pairRule lets through pairs of Unix sockets of these types: those of other
// families may have more than each other to talk to.
func pairRule(types ...uint32) rule {
	r := rule{nr: unix.SYS_SOCKETPAIR, otherwise: retErrno(unix.EACCES)}
	for _, kind := range types {
		r.clauses = append(r.clauses, clause{then: retAllow, when: []cond{
			{arg: 0, val: unix.AF_UNIX}, {arg: 1, mask: TypeMask, val: kind}}})
	}
	return r
}

// datagramPairRule has the broker make pairs of Unix datagram sockets: an end of a real
// one sends anywhere.
func datagramPairRule(o Options) rule {
	r := pairRule(unix.SOCK_STREAM, unix.SOCK_SEQPACKET)
	if o.broker {
		r.clauses = append(r.clauses, clause{then: retNotify, when: []cond{
			{arg: 0, val: unix.AF_UNIX}, {arg: 1, mask: TypeMask, val: unix.SOCK_DGRAM}, {arg: 2, val: 0}}})
	}
	return r
}

// signalRules keep signals away from the thread that starts a command: it is a
// thread of the server and shares the command's domain until it ends, so
// Landlock alone would let the command signal it, and with it the server.
// Signals within the domain are Landlock's to judge; those to a single process
// go to the broker, which reaches the session's other domains.
func signalRules(o Options) []rule {
	own := func(arg int) clause {
		return clause{when: []cond{{arg: arg, val: ownThread}}, then: retErrno(unix.EPERM)}
	}
	inside := uint32(retAllow)
	kill := []clause{own(0), {when: []cond{{arg: 0, val: 0}}, then: retAllow}}
	if o.scoped {
		kill = append(kill, clause{when: []cond{{arg: 0, val: ^uint32(0)}}, then: retAllow})
	} else {
		inside = retNotify
	}
	urgent := clause{when: []cond{{arg: 2, val: uint32(unix.SIGURG)}}, then: retAllow} // Go's preemption, by the thousand
	owner := clause{when: []cond{{arg: 1, val: unix.F_SETOWN}}, then: retErrno(unix.EPERM)}
	if o.scoped { // the kernel asks Landlock when the signal is sent
		owner.when = append(owner.when, cond{arg: 2, val: ownThread})
	}
	return []rule{
		{nr: unix.SYS_KILL, clauses: kill, otherwise: retNotify},
		{nr: unix.SYS_PIDFD_SEND_SIGNAL, otherwise: retNotify},
		{nr: unix.SYS_TKILL, clauses: []clause{own(0)}, otherwise: inside},
		{nr: unix.SYS_TGKILL, clauses: []clause{own(1), urgent}, otherwise: inside},
		{nr: unix.SYS_RT_SIGQUEUEINFO, clauses: []clause{own(0)}, otherwise: inside},
		{nr: unix.SYS_RT_TGSIGQUEUEINFO, clauses: []clause{own(1)}, otherwise: inside},
		fcntlRule(owner),
		{nr: unix.SYS_PIDFD_OPEN, otherwise: retAllow, clauses: []clause{
			{when: []cond{{arg: 1, mask: pidfdThread, any: true}}, then: retErrno(unix.EINVAL)}}},
	}
}

// otherTaskRules: limits and scheduling of a task other than the caller are
// settled by user id alone, so the broker asks whose it is.
func otherTaskRules() []rule {
	var rules []rule
	for _, nr := range []uint32{unix.SYS_PRLIMIT64, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETPARAM,
		unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETATTR} {
		rules = append(rules, rule{nr: nr, otherwise: retNotify, clauses: []clause{
			{when: []cond{{arg: 0, val: 0}}, then: retAllow}}})
	}
	const prioUser, ioprioUser = 2, 3
	for nr, user := range map[uint32]uint32{unix.SYS_SETPRIORITY: prioUser, unix.SYS_IOPRIO_SET: ioprioUser} {
		rules = append(rules, rule{nr: nr, otherwise: retNotify, clauses: []clause{
			{when: []cond{{arg: 0, val: user, not: true}, {arg: 1, val: 0}}, then: retAllow}}})
	}
	return rules
}

// neitherMode is the access of an open that is neither to read nor to write. It takes a
// user's right to both, and Landlock is asked for none: what has it then can empty files
// where Landlock does not know truncation, and steer terminals.
const neitherMode = unix.O_ACCMODE

// creationRules refuse making files with the set-id bits: a server that runs as
// root must not leave a set-id program where others can run it. Where Landlock
// does not know truncation, opening for it is refused too, and everywhere opening in
// a way of which it knows nothing.
func creationRules(o Options) []rule {
	open := func(nr uint32, flags int) rule {
		r := rule{nr: nr, otherwise: retAllow, clauses: []clause{{when: []cond{
			{arg: flags, mask: unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY, any: true},
			{arg: flags + 1, mask: SetIDBits, any: true}}, then: retErrno(unix.EPERM)},
			{when: []cond{{arg: flags, mask: unix.O_ACCMODE, val: neitherMode}}, then: retErrno(unix.EACCES)}}}
		if !o.truncate {
			r.clauses = append(r.clauses, clause{when: []cond{
				{arg: flags, mask: unix.O_TRUNC, any: true},
				{arg: flags, mask: unix.O_ACCMODE, val: unix.O_RDONLY}}, then: retErrno(unix.EACCES)})
		}
		if o.broker {
			r.clauses = append(r.clauses, terminalClauses(flags)...)
		}
		return r
	}
	rules := []rule{
		open(unix.SYS_OPENAT, 2),
		{nr: unix.SYS_OPENAT2, otherwise: retErrno(unix.ENOSYS)}, // its mode is out of a filter's sight
		{nr: unix.SYS_MKNODAT, otherwise: retAllow, clauses: []clause{
			{when: []cond{{arg: 2, mask: SetIDBits, any: true}}, then: retErrno(unix.EPERM)}}},
	}
	if !o.truncate {
		rules = append(rules, rule{nr: unix.SYS_TRUNCATE, otherwise: retErrno(unix.EACCES)})
	}
	return append(rules, legacyOpen(open)...)
}

// OptionsFor are the options of a filter that has the broker do what the kernel lets it.
func OptionsFor(f kernel.Features, network bool) Options {
	return Options{network: network, broker: f.Broker, Datagrams: f.Broker && !network, inject: f.Broker && !f.GetFD,
		scoped: f.Scoped(), truncate: f.Landlock >= 3}
}
