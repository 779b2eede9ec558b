package home

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/process/internal/private"
)

// TestGnupgHome: GnuPG gets a home of its own where it would leave HOME for its sockets, or
// where its home is the user's.
func TestGnupgHome(t *testing.T) {
	here, nowhere := t.TempDir(), filepath.Join(t.TempDir(), "none")
	for name, c := range map[string]struct {
		env     []string
		sockets string
		own     bool
	}{
		"no sockets of the user": {nil, nowhere, false},
		"sockets of the user":    {nil, here, true},
		"a home of the user's":   {[]string{"GNUPGHOME=/home/u/keys"}, nowhere, true},
	} {
		d, err := private.New(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer d.Remove()
		if err := d.Fill(); err != nil {
			t.Fatal(err)
		}
		dir := gnupgHome(d, c.env, c.sockets)
		if (dir != "") != c.own {
			t.Errorf("%s: %q", name, dir)
		}
		if info, err := os.Stat(dir); c.own && (err != nil || info.Mode() != os.ModeDir|0o700) {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
}
