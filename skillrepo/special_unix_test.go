//go:build unix

package skillrepo

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A FIFO would block whoever opens it.
func TestSpecialFilesAreNotOpened(t *testing.T) {
	s, dir := load(t, map[string]string{"root/s/SKILL.md": md("s", "d"), "root/t/x": ""})
	for _, p := range []string{filepath.Join(dir, "pipe"), filepath.Join(dir, "../t/SKILL.md")} {
		if err := syscall.Mkfifo(p, 0o644); err != nil {
			t.Skip(err)
		}
	}
	m, err := s.Manifest(t.Context())
	if err != nil || paths(m.Files) != "SKILL.md" || !strings.Contains(messages(m.Diagnostics), `"pipe" is left out: is not a regular file`) {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := s.Resource("pipe"); !errors.Is(err, ErrNotRegular) {
		t.Error(err)
	}
	r := open(t, wide(filepath.Dir(dir)))
	if names(r) != "s" || !strings.Contains(messages(r.Diagnostics()), "SKILL.md cannot be read: is not a regular file") {
		t.Errorf("%q, %v", names(r), r.Diagnostics())
	}
}
