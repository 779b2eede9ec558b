package baseagent

import (
	"errors"
	"io/fs"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/files"
	"github.com/perstack-ai/perstack-base/tools/internal/search"
)

// A searchTree is the files as a search sees them.
type searchTree struct {
	files *files.FS
	rel   string // the path of the call, cleaned
	given string // and as it was given, for errors
}

func (t searchTree) Open(path string) (search.Dir, search.File, error) {
	if path == t.rel {
		path = t.given
	}
	d, err := t.files.OpenDir(path)
	if err == nil {
		return dir{d}, nil, nil
	}
	if !errors.Is(err, sandbox.ErrNotDirectory) {
		return nil, nil, err
	}
	f, err := t.files.Open(path)
	if err != nil {
		return nil, nil, err
	}
	return nil, f, nil
}

type dir struct{ *files.Dir }

func (d dir) ReadDir() ([]search.Entry, error) {
	list, err := d.Entries()
	entries := make([]search.Entry, len(list))
	for i, e := range list {
		entries[i] = search.Entry{Name: e.Name, Kind: kindOf(e.Type)}
	}
	return entries, err
}

func kindOf(mode fs.FileMode) search.Kind {
	switch {
	case mode.IsRegular():
		return search.Regular
	case mode.IsDir():
		return search.Directory
	case mode&fs.ModeSymlink != 0:
		return search.Link
	}
	return search.Special
}

func (d dir) OpenDir(name string) (search.Dir, error) {
	sub, err := d.Dir.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return dir{sub}, nil
}

func (d dir) OpenFile(name string) (search.File, error) {
	f, err := d.Dir.OpenFile(name)
	if err != nil {
		return nil, err
	}
	return f, nil
}
