package search

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"testing"
	"time"
)

// rootTree is a Tree over an os.Root: what a portable sandbox would do.
type rootTree struct{ root *os.Root }

func openRoot(t testing.TB, dir string) Tree {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return rootTree{root}
}

func (t rootTree) Open(name string) (Dir, File, error) {
	info, err := t.root.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	if info.IsDir() {
		r, err := t.root.OpenRoot(name)
		if err != nil {
			return nil, nil, err
		}
		return rootDir{r}, nil, nil
	}
	f, err := t.root.Open(name)
	return nil, rootFile{f}, err
}

type rootDir struct{ *os.Root }

func (d rootDir) ReadDir() ([]Entry, error) {
	f, err := d.Root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := f.ReadDir(-1)
	var entries []Entry
	for _, e := range list {
		entries = append(entries, Entry{e.Name(), kindOf(e.Type())})
	}
	return entries, err
}

func kindOf(m fs.FileMode) Kind {
	switch {
	case m.IsRegular():
		return Regular
	case m.IsDir():
		return Directory
	case m&fs.ModeSymlink != 0:
		return Link
	}
	return Special
}

func (d rootDir) child(name string, dir bool) error {
	info, err := d.Lstat(name)
	if err == nil && (info.IsDir() != dir || !dir && !info.Mode().IsRegular()) {
		return errors.New("not the kind that was asked for")
	}
	return err
}

func (d rootDir) OpenDir(name string) (Dir, error) {
	if err := d.child(name, true); err != nil {
		return nil, err
	}
	r, err := d.OpenRoot(name)
	return rootDir{r}, err
}

func (d rootDir) OpenFile(name string) (File, error) {
	if err := d.child(name, false); err != nil {
		return nil, err
	}
	f, err := d.Root.Open(name)
	return rootFile{f}, err
}

type rootFile struct{ *os.File }

func (f rootFile) ModTime() time.Time {
	info, err := f.Stat()
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// write makes files below dir, the first the newest, a second apart.
func write(t testing.TB, dir string, files ...string) {
	t.Helper()
	when := time.Now().Truncate(time.Second)
	for i := 0; i < len(files); i += 2 {
		name := path.Join(dir, files[i])
		if err := os.MkdirAll(path.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(files[i+1]), 0o666); err != nil {
			t.Fatal(err)
		}
		when = when.Add(-time.Second)
		if err := os.Chtimes(name, when, when); err != nil {
			t.Fatal(err)
		}
	}
}

// tree returns a Tree of files, see write.
func tree(t testing.TB, files ...string) Tree {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, files...)
	return openRoot(t, dir)
}
