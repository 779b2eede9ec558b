//go:build amd64 || arm64

package namespaces

import (
	"os"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"golang.org/x/sys/unix"
)

// shareMemory gives the session a /dev/shm of its own, which shows of the machine's
// what the policy names. That was dropped, for all of /dev/shm can be written.
func (v view) shareMemory(p policy.Policy) error {
	const shm = "/dev/shm"
	named := view{grants: map[string]grant{}}
	for _, place := range p.Dropped {
		if place.Path == shm || !policy.Below(place.Path, []string{shm}) {
			continue
		}
		id := straight(oldRoot + place.Path)
		if id == (policy.FileID{}) || place.ID != (policy.FileID{}) && place.ID != id {
			continue
		}
		g := grant{write: place.Write || named.grants[place.Path].write, kind: place.Kind, from: place.Path, id: id}
		named.grants[place.Path], v.grants[place.Path] = g, g
	}
	if err := v.mountTmpfs(shm); err != nil {
		return err
	}
	return named.bindAll()
}

// straight is what lies at a path to which no link leads, zero for nothing.
func straight(path string) policy.FileID {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return policy.FileID{}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return policy.FileID{}
	}
	return policy.IdOf(&st)
}

// queues is where POSIX message queues are seen: the session's, as they belong to its
// namespace. Landlock grants them by this place, too.
const queues = "/dev/mqueue"

// mountQueues shows them. Kernels without any have nothing to show.
func mountQueues() error {
	if err := os.MkdirAll(queues, 0o755); err != nil {
		return err
	}
	err := unix.Mount("mqueue", queues, "mqueue", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	if err != nil {
		return os.Remove(queues)
	}
	return nil
}
