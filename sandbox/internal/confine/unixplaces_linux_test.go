//go:build amd64 || arm64

package confine

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/threads"
	"golang.org/x/sys/unix"
)

func init() {
	probeTable["dgram-places"] = escape{try: bindInPlaces}
}

// bindDatagram binds a datagram socket to a path.
func bindDatagram(path string) error {
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	return unix.Bind(s, &unix.SockaddrUnix{Name: path})
}

// bindInPlaces makes sockets in a place of git's, at one of a single file, and by a name
// that leads up from where a link leads.
func bindInPlaces() error {
	errs := []error{errors.Join(os.MkdirAll("a/b", 0o700), os.Symlink("a/b", "link"), bindDatagram("link/../up"))}
	if info, err := os.Lstat("a/up"); err != nil || info.Mode()&os.ModeSocket == 0 {
		errs = append(errs, errors.New("link/../up is not a/up, as the kernel has it"))
	}
	for _, path := range []string{"git/made", "git/objects/info/alternates", "single"} {
		_ = bindDatagram(outside(path))
	}
	return errors.Join(errs...)
}

// TestUnixDatagramsKeepToPlaces: where git's data lies no socket can be made, nor at the
// path of a file that alone can be written, once it is gone.
func TestUnixDatagramsKeepToPlaces(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	names := []string{"git/made", "git/objects/info/alternates", "single"}
	for name, confined := range map[string]func(*testing.T, place, policy.Policy) *threads.Confiner{
		"threads": func(t *testing.T, _ place, p policy.Policy) *threads.Confiner {
			return confiner(t, p, kernel.Missing{})
		},
		"outside": func(*testing.T, place, policy.Policy) *threads.Confiner { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			git, objects, single := filepath.Join(p.outside, "git"), filepath.Join(p.outside, "git/objects"), filepath.Join(p.outside, "single")
			must(t, errors.Join(os.MkdirAll(filepath.Join(objects, "info"), 0o700), os.WriteFile(single, nil, 0o600)))
			pinned := p.policy().Pin()
			t.Cleanup(pinned.Close)
			with, release := pinned.With(nil, []string{git, objects, single}, "git's")
			t.Cleanup(release)
			with.OfGit(map[string]policy.Kind{git: policy.GitData, objects: policy.GitObjects})
			c := confined(t, p, with)
			must(t, os.Remove(single))
			if r := p.do(t, c, []string{probeVar + "=dgram-places", "PROBE_OUTSIDE=" + p.outside}, exe); r.err != nil {
				t.Error(r.err, r.out)
			}
			for _, name := range names {
				if _, err := os.Lstat(filepath.Join(p.outside, name)); (err == nil) != (c == nil) {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}
