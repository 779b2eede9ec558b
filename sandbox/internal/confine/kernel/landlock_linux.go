//go:build amd64 || arm64

package kernel

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"unsafe"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"golang.org/x/sys/unix"
)

const (
	fileRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE |
		unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	ReadRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE |
		unix.LANDLOCK_ACCESS_FS_READ_DIR
	DeviceRights = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_READ_DIR | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	// Everything that Landlock knows except making device nodes and talking to devices.
	WriteRights = ReadRights | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	// No links, sockets or FIFOs, and nothing moved in: a directory from the
	// workspace may hold links.
	GitRights = WriteRights &^ (unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_REFER)
)

// LandlockABI returns the version of Landlock that the kernel offers, 0 for none.
func LandlockABI() int {
	v, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if e != 0 {
		return 0
	}
	return int(v)
}

// handledFS returns the file rights that a kernel of this ABI can refuse.
func handledFS(abi int) uint64 {
	rights := uint64(unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1) // ABI 1: the first thirteen
	if abi >= 2 {
		rights |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= 3 {
		rights |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 5 {
		rights |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return rights
}

// PolicyAttr returns what the ruleset of commands handles.
func PolicyAttr(abi int, network bool) unix.LandlockRulesetAttr {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: handledFS(abi)}
	if abi >= 4 && !network {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	return attr
}

// PolicyRuleset builds the ruleset of p, which is pinned; the descriptor is used
// for every command.
func PolicyRuleset(p policy.Policy, abi int) (int, error) {
	attr := PolicyAttr(abi, p.Network)
	fd, err := CreateRuleset(&attr)
	if err != nil {
		return -1, err
	}
	err = AddPlaces(fd, p.Places, attr.Handled_access_fs)
	for _, path := range p.Devices {
		if err == nil {
			err = AddRule(fd, path, DeviceRights&attr.Handled_access_fs)
		}
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// AddPlaces grants what the descriptors of the places refer to.
func AddPlaces(ruleset int, places []policy.Place, handled uint64) error {
	for _, place := range places {
		if place.Covered {
			continue
		}
		if err := addObject(ruleset, place.Fd.Number(), place.Real, rightsIn(place)&handled); err != nil {
			return err
		}
		if place.Write && place.Kind == policy.GitObjects {
			if err := addStore(ruleset, place, handled); err != nil {
				return err
			}
		}
	}
	return nil
}

// rightsIn are those in all that a place holds.
func rightsIn(place policy.Place) uint64 {
	switch {
	case place.Write && place.Kind == policy.Everything:
		return WriteRights
	case place.Write && place.Kind == policy.GitData:
		return GitRights
	}
	return ReadRights
}

// addStore grants the directories in which git keeps objects. They are made where
// they are missing, as git does, because commands cannot.
func addStore(ruleset int, place policy.Place, handled uint64) error {
	names := []string{"pack"}
	for i := range 256 {
		names = append(names, fmt.Sprintf("%02x", i))
	}
	for _, name := range names {
		_ = unix.Mkdirat(place.Fd.Number(), name, 0o777) // as git does; the umask counts
		fd, err := unix.Openat(place.Fd.Number(), name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // no part of it for this user
		}
		err = addObject(ruleset, fd, filepath.Join(place.Real, name), GitRights&handled)
		unix.Close(fd)
		if err != nil {
			return err
		}
	}
	return nil
}

// outerRuleset only scopes signals: the watcher lives in it, the commands in a
// domain nested inside. REFER has to be allowed everywhere, because every
// Landlock domain refuses moving files between directories unless told otherwise.
func outerRuleset() (int, error) {
	attr := unix.LandlockRulesetAttr{
		Handled_access_fs: unix.LANDLOCK_ACCESS_FS_REFER,
		Scoped:            unix.LANDLOCK_SCOPE_SIGNAL,
	}
	fd, err := CreateRuleset(&attr)
	if err != nil {
		return -1, err
	}
	if err := AddRule(fd, "/", unix.LANDLOCK_ACCESS_FS_REFER); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// Outer is the one that all watchers of this program share.
var Outer = sync.OnceValues(outerRuleset)

// CreateRuleset makes an empty ruleset.
func CreateRuleset(attr *unix.LandlockRulesetAttr) (int, error) {
	fd, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(attr)), unsafe.Sizeof(*attr), 0)
	if e != 0 {
		return -1, fmt.Errorf("landlock_create_ruleset: %w", e)
	}
	return int(fd), nil
}

// AddRule grants rights below path. A path that does not exist is skipped.
func AddRule(ruleset int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if policy.Scarce(err) {
		return os.NewSyscallError("open", err)
	}
	if err != nil {
		return nil // absent or unreachable: nothing to grant
	}
	defer unix.Close(fd)
	return addObject(ruleset, fd, path, rights)
}

// addObject grants rights below what fd refers to.
func addObject(ruleset, fd int, path string, rights uint64) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights
	}
	if rights == 0 {
		return nil
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, e := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if e != 0 {
		return fmt.Errorf("landlock_add_rule %s: %w", path, e)
	}
	return nil
}

// RestrictThread puts the calling thread into a new domain.
func RestrictThread(ruleset int) error {
	if _, _, e := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); e != 0 {
		return fmt.Errorf("landlock_restrict_self: %w", e)
	}
	return nil
}
