//go:build amd64 || arm64

package seccomp

import (
	"slices"

	"golang.org/x/sys/unix"
)

// Landlock judges ioctls on devices and no others, and for most of them a
// descriptor that can only be read is enough: on btrfs one of a directory makes
// subvolumes in it. So commands make those that are named here. Each reads, or
// acts on the caller's own descriptor, terminal or writable file.

// Requests that package unix does not name.
const (
	fioNonblock     = 0x5421     // FIONBIO
	fioNoCloseExec  = 0x5450     // FIONCLEX
	fioCloseExec    = 0x5451     // FIOCLEX
	fioAsync        = 0x5452     // FIOASYNC
	fioSize         = 0x5460     // FIOQSIZE
	fioGetOwner     = 0x8903     // FIOGETOWN
	fioSetOwner     = 0x8901     // FIOSETOWN
	fileBlockSize   = 2          // FIGETBSZ
	fileExtents     = 0xc020660b // FS_IOC_FIEMAP
	fileVersion     = 0x80087601 // FS_IOC_GETVERSION
	fileGetXattrs   = 0x801c581f // FS_IOC_FSGETXATTR
	fileSetXattrs   = 0x401c5820 // FS_IOC_FSSETXATTR
	fileSetVersion  = 0x40087602 // FS_IOC_SETVERSION
	fileSetFlags32  = 0x40046602 // FS_IOC32_SETFLAGS
	fileSystemLabel = 0x81009431 // FS_IOC_GETFSLABEL
	fileSystemUUID  = 0x80111500 // FS_IOC_GETFSUUID
)

// anyDescriptor are about the descriptor and what waits to be read from it.
var anyDescriptor = []uint32{fioNonblock, fioCloseExec, fioNoCloseExec, fioAsync, fioSize, fioGetOwner, unix.TIOCINQ, unix.TIOCOUTQ}

// terminalRequests do not push input (TIOCSTI), reach the console or load line
// disciplines.
var terminalRequests = []uint32{
	unix.TCGETS, unix.TCSETS, unix.TCSETSW, unix.TCSETSF, unix.TCGETS2, unix.TCSETS2, unix.TCSETSW2, unix.TCSETSF2,
	unix.TCGETA, unix.TCSETA, unix.TCSETAW, unix.TCSETAF, unix.TCSBRK, unix.TCSBRKP, unix.TCXONC, unix.TCFLSH,
	unix.TIOCGWINSZ, unix.TIOCSWINSZ, unix.TIOCGPGRP, unix.TIOCSPGRP, unix.TIOCGSID, unix.TIOCSCTTY, unix.TIOCNOTTY,
	unix.TIOCEXCL, unix.TIOCNXCL, unix.TIOCGEXCL, unix.TIOCSBRK, unix.TIOCCBRK, unix.TIOCMGET, unix.TIOCGETD, unix.TIOCGDEV,
	unix.TIOCGPTN, unix.TIOCSPTLCK, unix.TIOCGPTLCK, unix.TIOCGPTPEER, unix.TIOCPKT, unix.TIOCGPKT,
}

// socketRequests ask. What SIOCETHTOOL can set takes a capability that no
// command has.
var socketRequests = []uint32{
	unix.SIOCATMARK, unix.SIOCGPGRP, unix.SIOCGSTAMP, unix.SIOCGSTAMPNS, unix.SIOCGSTAMP_NEW, unix.SIOCGSTAMPNS_NEW, unix.SIOCOUTQNSD,
	unix.SIOCGIFADDR, unix.SIOCGIFBRDADDR, unix.SIOCGIFCONF, unix.SIOCGIFDSTADDR, unix.SIOCGIFFLAGS, unix.SIOCGIFHWADDR,
	unix.SIOCGIFINDEX, unix.SIOCGIFMAP, unix.SIOCGIFMETRIC, unix.SIOCGIFMTU, unix.SIOCGIFNAME, unix.SIOCGIFNETMASK,
	unix.SIOCGIFTXQLEN, unix.SIOCETHTOOL,
}

// fileRequests ask, too, but for the two that share blocks between files: the
// target of those must be open for writing. FIDEDUPERANGE is not among them
// because for that a file's owner need not have it open so.
var fileRequests = []uint32{
	unix.FICLONE, unix.FICLONERANGE, fileBlockSize, fileExtents, fileVersion, fileGetXattrs, unix.FS_IOC_GETFLAGS,
	fileSystemLabel, fileSystemUUID, unix.BLKGETSIZE, unix.BLKGETSIZE64, unix.BLKSSZGET, unix.RNDGETENTCNT,
	unix.NS_GET_NSTYPE, unix.NS_GET_OWNER_UID, unix.NS_GET_USERNS, unix.NS_GET_PARENT,
}

// listenerRequests are those of who answers for the filter of a program of its own, as a
// server in a command does. What the filters around that refuse stays refused.
var listenerRequests = []uint32{
	unix.SECCOMP_IOCTL_NOTIF_RECV, unix.SECCOMP_IOCTL_NOTIF_SEND, unix.SECCOMP_IOCTL_NOTIF_ID_VALID,
	unix.SECCOMP_IOCTL_NOTIF_ADDFD, unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS,
}

// ioctlRule refuses all others as the kernel does what an object does not know,
// and the setters of a file's flags as file systems do that have none: programs
// take that in their stride.
func ioctlRule() rule {
	request := func(then uint32, requests []uint32) clause {
		return clause{when: []cond{{arg: 1, in: requests}}, then: then}
	}
	return rule{nr: unix.SYS_IOCTL, otherwise: retErrno(unix.ENOTTY), clauses: []clause{
		request(retAllow, slices.Concat(anyDescriptor, terminalRequests, socketRequests, fileRequests, listenerRequests)),
		request(retErrno(unix.EOPNOTSUPP), []uint32{unix.FS_IOC_SETFLAGS, fileSetFlags32, fileSetVersion, fileSetXattrs, unix.FS_IOC_ENABLE_VERITY}),
		request(retErrno(unix.EPERM), []uint32{unix.TIOCSTI, unix.TIOCLINUX, fioSetOwner, unix.SIOCSPGRP}),
	}}
}

// What fcntl does with a lease or a delegation makes every other program wait that
// opens the file, the server too; with a hint it changes files that can only be
// read. So commands get the rest.
var fcntlCommands = []uint32{
	unix.F_DUPFD, unix.F_DUPFD_CLOEXEC, unix.F_DUPFD_QUERY, unix.F_CREATED_QUERY, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL,
	unix.F_GETLK, unix.F_SETLK, unix.F_SETLKW, unix.F_OFD_GETLK, unix.F_OFD_SETLK, unix.F_OFD_SETLKW,
	unix.F_GETOWN, unix.F_SETOWN, unix.F_GETOWN_EX, fcntlOwnerIDs, unix.F_GETSIG, unix.F_SETSIG, unix.F_NOTIFY, unix.F_GETLEASE,
	unix.F_GETPIPE_SZ, unix.F_SETPIPE_SZ, unix.F_GET_SEALS, unix.F_ADD_SEALS, unix.F_GET_RW_HINT, unix.F_GET_FILE_RW_HINT,
}

const fcntlOwnerIDs = 17 // F_GETOWNER_UIDS

// fcntlRule refuses all others as the kernel does what it does not know; leases as
// where somebody else has the file open.
func fcntlRule(before ...clause) rule {
	return rule{nr: unix.SYS_FCNTL, otherwise: retErrno(unix.EINVAL), clauses: append(before,
		clause{when: []cond{{arg: 1, in: fcntlCommands}}, then: retAllow},
		clause{when: []cond{{arg: 1, val: unix.F_SETLEASE}}, then: retErrno(unix.EAGAIN)})}
}

// ipcRules send the calls of System V objects to the broker, and the POSIX queues, which anybody of
// this user may remove and which outlast their makers, to be refused.
func ipcRules() (rules []rule) {
	rules = all(retNotify, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK)
	return append(rules, all(retNotify, IPCCalls...)...)
}

// IPCCalls are those of System V objects.
var IPCCalls = []uint32{
	unix.SYS_SHMGET, unix.SYS_SHMCTL, unix.SYS_SHMAT,
	unix.SYS_SEMGET, unix.SYS_SEMCTL, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP,
	unix.SYS_MSGGET, unix.SYS_MSGCTL, unix.SYS_MSGSND, unix.SYS_MSGRCV,
}
