//go:build amd64 || arm64

package namespaces

import (
	"os"

	"golang.org/x/sys/unix"
)

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
