package home

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/perstack-ai/perstack-base/sandbox/process/internal/environ"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/private"
)

// userSockets is where GnuPG keeps its sockets for a HOME of the usual name, where it exists.
func userSockets() string { return fmt.Sprintf("/run/user/%d/gnupg", os.Geteuid()) }

// gnupgHome gives GnuPG a home of another name than its usual one, "" where it needs none.
// With the usual one its sockets go to the directory that the user's own has for them, out
// of reach of commands; with another, below that, and into its home where that fails.
func gnupgHome(d *private.Dir, env []string, sockets string) (dir string) {
	if _, ok := environ.Get(env, "GNUPGHOME"); !ok && !isDir(sockets) {
		return ""
	}
	d.Keep(".local/gnupg", func(name string) error {
		dir = filepath.Join(d.Path, name)
		return d.Root.Mkdir(name, 0o700)
	})
	return dir
}
