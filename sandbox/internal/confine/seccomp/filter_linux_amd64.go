package seccomp

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// legacyRules are the calls that newer architectures left out.
func legacyRules() []rule {
	return all(retNotify, unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN,
		unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT)
}

func legacyOpen(open func(nr uint32, flags int) rule) []rule {
	setID := func(nr uint32) rule {
		return rule{nr: nr, otherwise: retAllow, clauses: []clause{
			{when: []cond{{arg: 1, mask: SetIDBits, any: true}}, then: retErrno(unix.EPERM)}}}
	}
	return []rule{open(unix.SYS_OPEN, 1), setID(unix.SYS_CREAT), setID(unix.SYS_MKNOD)}
}

// legacyChmod are the older calls that change a mode, the second argument.
var legacyChmod = []uint32{unix.SYS_CHMOD}
