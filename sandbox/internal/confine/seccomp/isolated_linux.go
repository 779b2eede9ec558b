//go:build amd64 || arm64

package seccomp

import "golang.org/x/sys/unix"

// BuildIsolated returns the filter of commands in namespaces. Those settle
// addresses, paths and processes, so nothing needs a broker; and a broker, which
// sees the machine from outside, would judge the wrong paths. What remains is
// what namespaces do not divide.
func BuildIsolated() []unix.SockFilter {
	var rules []rule
	for _, part := range [][]rule{refusedRules(), isolatedSocketRules(), modeRules(), limitRules(),
		creationRules(Options{truncate: true})} {
		rules = append(rules, part...)
	}
	withoutBroker(rules)
	return assemble(auditArch, unix.SYS_RSEQ_SLICE_YIELD, rules)
}

// limitRules refuse the limits of other processes: those that hold the session
// together have the same user.
func limitRules() []rule {
	return []rule{{nr: unix.SYS_PRLIMIT64, otherwise: retErrno(unix.EPERM), clauses: []clause{
		{when: []cond{{arg: 0, val: 0}}, then: retAllow}}}} // a filter sees half of the pointer that would tell reading
}

// isolatedSocketRules let through the kinds of sockets that belong to a network
// or mount namespace, and what is done with any descriptor.
func isolatedSocketRules() []rule {
	var clauses []clause
	for _, domain := range []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6} {
		for _, kind := range []uint32{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET} {
			clauses = append(clauses, clause{then: retAllow, when: []cond{
				{arg: 0, val: domain}, {arg: 1, mask: TypeMask, val: kind}}})
		}
	}
	clauses = append(clauses, clause{then: retAllow, when: []cond{ // another name for a datagram socket, with which servers try themselves
		{arg: 0, val: unix.AF_UNIX}, {arg: 1, mask: TypeMask, val: unix.SOCK_RAW}}})
	clauses = append(clauses, clause{then: retAllow, when: []cond{
		{arg: 0, val: unix.AF_NETLINK}, {arg: 2, val: unix.NETLINK_ROUTE}}})
	return []rule{{nr: unix.SYS_SOCKET, clauses: clauses, otherwise: retErrno(unix.EACCES)},
		pairRule(unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET), fcntlRule()}
}

// modeRules refuse the set-id bits: a program with them in the workspace would
// have them outside too.
func modeRules() []rule {
	modes := map[uint32]int{unix.SYS_FCHMOD: 1, unix.SYS_FCHMODAT: 2, unix.SYS_FCHMODAT2: 2}
	for _, nr := range legacyChmod {
		modes[nr] = 1
	}
	var rules []rule
	for nr, arg := range modes {
		rules = append(rules, rule{nr: nr, otherwise: retAllow, clauses: []clause{
			{when: []cond{{arg: arg, mask: SetIDBits, any: true}}, then: retErrno(unix.EPERM)}}})
	}
	return rules
}
