//go:build amd64 || arm64

package namespaces

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ResolvConf says whom programs ask for names.
const ResolvConf = "/etc/resolv.conf"

// layNameServers lays a text over that file, in the tree of the session.
func (v view) layNameServers(text string) error {
	if text == "" {
		return nil
	}
	const from = "/.resolv.conf"
	if err := os.WriteFile(from, []byte(text), 0o644); err != nil {
		return err
	}
	defer os.Remove(from)
	to, err := filepath.EvalSymlinks(ResolvConf)
	if err != nil { // this machine has none, and programs ask their own loopback
		if _, granted := v.above(ResolvConf); granted { // nothing is made in what is the machine's
			return nil
		}
		to = ResolvConf
		if err := emptyFile(to); err != nil {
			return err
		}
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("%s: %w", to, err)
	}
	return setMount(to, 0, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
}
