package containers

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"github.com/perstack-ai/perstack-base/sandbox/internal/disk"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/environ"
)

// Places are what commands reach in a container besides the workspace.
type Places struct{ Read, Write []string }

// Mounts are the places of this machine that a container has, each where it is here.
type Mounts []Mount

// A Mount is one place of this machine in a container.
type Mount struct {
	from  string // links resolved
	At    string
	Write bool
	every bool // every command may write there, not only those that are told to
	git   bool // of the workspace's repository: where nothing keeps links out, it is only read
}

// MountsFor are those of a container whose session reaches some places besides what
// all commands do, and runs a command that needs others.
func (f *Fleet) MountsFor(more ...Places) Mounts {
	p := f.Policy()
	repo := f.Repository()
	every := []Places{{f.AllowRead, f.AllowWrite}}
	more = append([]Places{{Read: repo.Read}}, more...)
	if cache := f.Cache(); cache != nil {
		every = append(every, Places{nil, []string{cache.Dir()}})
	}
	m := Mounts{{from: f.Dir, At: f.Dir, Write: true, every: true}}
	for i, places := range append(every, more...) {
		for _, path := range places.Write {
			m = m.add(p, path, true, i < len(every))
		}
		for _, path := range places.Read {
			m = m.add(p, path, false, false)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(repo.Write)) {
		if n := len(m); len(m.add(p, path, true, false)) > n {
			m = append(m, Mount{from: path, At: path, Write: true, git: true})
		}
	}
	return m.tidy()
}

// add adds a place that exists, unless commands decide what it leads to.
func (m Mounts) add(p policy.Policy, path string, write, every bool) Mounts {
	path = filepath.Clean(path)
	real, err := filepath.EvalSymlinks(path)
	decides := path
	if write {
		decides = filepath.Dir(path)
	}
	if err != nil || !filepath.IsAbs(path) || !p.Safe(decides) {
		return m
	}
	return append(m, Mount{from: real, At: path, Write: write, every: every})
}

// tidy sorts mounts, those that lie in another one behind it, and leaves out what the
// one around it grants already.
func (m Mounts) tidy() Mounts {
	slices.SortStableFunc(m, func(a, b Mount) int {
		if c := strings.Compare(a.At, b.At); c != 0 || a.Write == b.Write {
			return c
		} else if a.Write {
			return -1
		}
		return 1
	})
	var kept Mounts
	for _, one := range m {
		if around := kept.around(one.At); around == nil || !around.grants(one) {
			kept = append(kept, one)
		}
	}
	return kept
}

// around is the innermost mount in which a path lies, nil for none.
func (m Mounts) around(path string) *Mount {
	for i := len(m) - 1; i >= 0; i-- {
		if belowPath(path, m[i].At) {
			return &m[i]
		}
	}
	return nil
}

// grants reports whether another mount adds nothing.
func (m Mount) grants(other Mount) bool {
	rel, err := filepath.Rel(m.At, other.At)
	return err == nil && filepath.Join(m.from, rel) == other.from && (m.Write || !other.Write)
}

// Cover reports whether a container has the places that a command needs, as far as
// they are there.
func (m Mounts) Cover(needs Places) bool {
	has := func(path string, write bool) bool {
		path = filepath.Clean(path)
		around := m.around(path)
		return around != nil && (around.Write || !write) || !environ.Exists(path)
	}
	return !slices.ContainsFunc(needs.Read, func(path string) bool { return !has(path, false) }) &&
		!slices.ContainsFunc(needs.Write, func(path string) bool { return !has(path, true) })
}

// Writable are the places that every command may write.
func (m Mounts) Writable() (paths []string) {
	for _, one := range m {
		if one.every {
			paths = append(paths, one.At)
		}
	}
	return paths
}

// belowPath reports whether a clean path is dir or lies in it.
func belowPath(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, disk.WithSeparator(dir))
}

// unguarded reports whether nothing but the container confines commands, as far as
// that is known.
func (f *Fleet) unguarded() bool { return f.bare.Load() || f.Unconfined }

// covers are the sockets of this machine in places that commands may only read, where
// nothing else keeps commands from connecting to them: a mount that is read only
// does not. Who names a socket itself has it.
func (b *Container) covers() (paths []string) {
	m := b.Mounts
	if !b.Bare {
		return nil
	}
	for _, one := range m {
		if one.Write {
			continue
		}
		for _, path := range confine.SocketsBelow([]string{one.from}) {
			if rel, err := filepath.Rel(one.from, path); err == nil {
				paths = append(paths, filepath.Join(one.At, rel))
			}
		}
	}
	return slices.DeleteFunc(paths, func(path string) bool { return m.around(path).Write })
}

// guarded reports whether there are places that are not as safe without a guard inside.
func (m Mounts) guarded() bool {
	return m.git() || slices.ContainsFunc(m, func(one Mount) bool { return !one.Write })
}

// git reports whether there are places of git's that commands may write.
func (m Mounts) git() bool {
	return slices.ContainsFunc(m, func(one Mount) bool { return one.git })
}
