package files

import (
	"fmt"
	"github.com/perstack-ai/perstack-base/sandbox/internal/disk"
	"os"
)

// OwnerHint says what to do when a write is refused because a container runs as
// somebody other than the owner of the workspace; "" when that is not so.
func (f *FS) OwnerHint() string {
	if f == nil || os.Geteuid() <= 0 || !inContainer() {
		return ""
	}
	st := f.cur.Load()
	if st == nil {
		return ""
	}
	const othersWrite = 0o002
	if info, err := st.root.Stat("."); err != nil || !disk.OwnedByOther(info) || info.Mode()&othersWrite != 0 {
		return ""
	}
	return fmt.Sprintf(`This container runs as user %d, who does not own the workspace. Ask the user to start it with docker run --user "$(id -u):$(id -g)".`, os.Geteuid())
}

// inContainer tells whether Docker or Podman runs this process.
func inContainer() bool {
	for _, mark := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Lstat(mark); err == nil {
			return true
		}
	}
	return false
}
