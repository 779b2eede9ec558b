package patch

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

var errOutside = errors.New("leads outside")

// disk is a Tree over a real directory, and carries out plans there.
type disk struct{ root string }

func newDisk(t testing.TB) disk {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return disk{root}
}

func (d disk) Lookup(p string, follow bool) (Entry, error) {
	name := path.Clean(p)
	if name == ".." || strings.HasPrefix(name, "../") {
		return Entry{}, errOutside
	}
	if name == "." {
		return Entry{Name: ".", Mode: fs.ModeDir | 0o777}, nil
	}
	parent, err := d.Lookup(path.Dir(name), true)
	name = path.Join(parent.Name, path.Base(name))
	if err != nil {
		return Entry{Name: name}, err
	}
	info, err := os.Lstat(filepath.Join(d.root, name))
	if errors.Is(err, syscall.ENOTDIR) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return Entry{Name: name}, err
	}
	if follow && info.Mode()&fs.ModeSymlink != 0 {
		to, _ := os.Readlink(filepath.Join(d.root, name))
		if !filepath.IsLocal(to) {
			return Entry{}, errOutside
		}
		return d.Lookup(path.Join(path.Dir(name), to), true)
	}
	return Entry{Name: name, Mode: info.Mode(), Size: info.Size()}, nil
}

func (d disk) ReadFile(name string) ([]byte, error) { return os.ReadFile(filepath.Join(d.root, name)) }

// apply carries out a plan.
func (d disk) apply(t testing.TB, plan *Plan) {
	t.Helper()
	for _, c := range plan.Changes {
		full := filepath.Join(d.root, c.Name)
		if c.Remove {
			if err := os.Remove(full); err != nil {
				t.Fatal(err)
			}
			continue
		}
		d.write(t, c.Name, c.Data)
		if c.SetMode {
			if err := os.Chmod(full, c.Mode); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (d disk) write(t testing.TB, name string, data []byte) {
	t.Helper()
	full := filepath.Join(d.root, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

func (d disk) link(t testing.TB, to, name string) {
	t.Helper()
	if err := os.Symlink(to, filepath.Join(d.root, name)); err != nil {
		t.Skip(err)
	}
}

// files returns what is there: content by name, links as "-> target".
func (d disk) files(t testing.TB) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(d.root, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, _ := filepath.Rel(d.root, p)
		name = filepath.ToSlash(name)
		if e.Type()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(p)
			found[name] = "-> " + to
			return err
		}
		data, err := os.ReadFile(p)
		found[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// run parses, plans and applies a patch.
func (d disk) run(t testing.TB, text string) (string, error) {
	t.Helper()
	p, err := Parse(text)
	if err != nil {
		return "", err
	}
	plan, err := p.Plan(d)
	if err != nil {
		return "", err
	}
	d.apply(t, plan)
	return plan.Summary(), nil
}
