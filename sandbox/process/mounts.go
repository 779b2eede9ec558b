package process

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

// places are what commands reach in a container besides the workspace.
type places struct{ Read, Write []string }

// mounts are the places of this machine that a container has, each where it is here.
type mounts []bindMount

type bindMount struct {
	from  string // links resolved
	at    string
	write bool
	every bool // every command may write there, not only those that are told to
	git   bool // of the workspace's repository: where nothing keeps links out, it is only read
}

// mountsFor are those of a container whose session reaches some places besides what
// all commands do, and runs a command that needs others.
func (f *fleet) mountsFor(more ...places) mounts {
	p := f.Policy()
	repo := f.Repository()
	every := []places{{f.AllowRead, f.AllowWrite}}
	more = append([]places{{Read: repo.Read}}, more...)
	if cache := f.Cache(); cache != nil {
		every = append(every, places{nil, []string{cache.Dir()}})
	}
	m := mounts{{from: f.Dir, at: f.Dir, write: true, every: true}}
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
			m = append(m, bindMount{from: path, at: path, write: true, git: true})
		}
	}
	return m.tidy()
}

// add adds a place that exists, unless commands decide what it leads to.
func (m mounts) add(p policy.Policy, path string, write, every bool) mounts {
	path = filepath.Clean(path)
	real, err := filepath.EvalSymlinks(path)
	decides := path
	if write {
		decides = filepath.Dir(path)
	}
	if err != nil || !filepath.IsAbs(path) || !p.Safe(decides) {
		return m
	}
	return append(m, bindMount{from: real, at: path, write: write, every: every})
}

// tidy sorts mounts, those that lie in another one behind it, and leaves out what the
// one around it grants already.
func (m mounts) tidy() mounts {
	slices.SortStableFunc(m, func(a, b bindMount) int {
		if c := strings.Compare(a.at, b.at); c != 0 || a.write == b.write {
			return c
		} else if a.write {
			return -1
		}
		return 1
	})
	var kept mounts
	for _, one := range m {
		if around := kept.around(one.at); around == nil || !around.grants(one) {
			kept = append(kept, one)
		}
	}
	return kept
}

// around is the innermost mount in which a path lies, nil for none.
func (m mounts) around(path string) *bindMount {
	for i := len(m) - 1; i >= 0; i-- {
		if belowPath(path, m[i].at) {
			return &m[i]
		}
	}
	return nil
}

// grants reports whether another mount adds nothing.
func (m bindMount) grants(other bindMount) bool {
	rel, err := filepath.Rel(m.at, other.at)
	return err == nil && filepath.Join(m.from, rel) == other.from && (m.write || !other.write)
}

// cover reports whether a container has the places that a command needs, as far as
// they are there.
func (m mounts) cover(needs places) bool {
	has := func(path string, write bool) bool {
		path = filepath.Clean(path)
		around := m.around(path)
		return around != nil && (around.write || !write) || !environ.Exists(path)
	}
	return !slices.ContainsFunc(needs.Read, func(path string) bool { return !has(path, false) }) &&
		!slices.ContainsFunc(needs.Write, func(path string) bool { return !has(path, true) })
}

// writable are the places that every command may write.
func (m mounts) writable() (paths []string) {
	for _, one := range m {
		if one.every {
			paths = append(paths, one.at)
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
func (f *fleet) unguarded() bool { return f.bare.Load() || f.Unconfined }

// covers are the sockets of this machine in places that commands may only read, where
// nothing else keeps commands from connecting to them: a mount that is read only
// does not. Who names a socket itself has it.
func (b *container) covers() (paths []string) {
	m := b.mounts
	if !b.bare {
		return nil
	}
	for _, one := range m {
		if one.write {
			continue
		}
		for _, path := range confine.SocketsBelow([]string{one.from}) {
			if rel, err := filepath.Rel(one.from, path); err == nil {
				paths = append(paths, filepath.Join(one.at, rel))
			}
		}
	}
	return slices.DeleteFunc(paths, func(path string) bool { return m.around(path).write })
}

// guarded reports whether there are places that are not as safe without a guard inside.
func (m mounts) guarded() bool {
	return m.git() || slices.ContainsFunc(m, func(one bindMount) bool { return !one.write })
}

// git reports whether there are places of git's that commands may write.
func (m mounts) git() bool {
	return slices.ContainsFunc(m, func(one bindMount) bool { return one.git })
}
