package files

import (
	"errors"
	"github.com/perstack-ai/perstack-base/sandbox"
	"io/fs"
)

// A Tx reads files and collects changes that take effect together, or not at
// all. Its reads see its own changes. Everything a Tx names is locked against
// other writers of the FS until the transaction ends.
type Tx struct {
	f       *FS
	st      *state
	held    map[string]bool // lock keys
	removes bool            // something existing is removed: names below it have to be minded
	wanted  []string        // keys that were busy: the next attempt begins with them
	changes map[string]*change
	order   []*change
}

// A change is what shall happen to one entry.
type change struct {
	name   string // as the caller gave it
	p      Path
	data   []byte
	mode   *fs.FileMode
	remove bool
	below  string // the entry whose removal makes room for this one, "" for none
}

// errBusy makes the caller's function return, to be run again with more locks.
var errBusy = errors.New("another write to this file is under way")

// Transact calls fn and then makes all its changes, or none: if one fails, the
// others are taken back; if even that fails the error is a *RestoreError. An
// error of fn is returned as it is and nothing changes.
//
// fn may be called more than once, each time from the beginning: names that it
// uses are locked as it goes, and when one of them is busy all locks are given
// up and taken again in order, so that two transactions never wait for each
// other. names are those known beforehand; they may be empty. fn must not call
// other writing methods of the FS.
func (f *FS) Transact(names []string, fn func(*Tx) error) error {
	var keys []string
	for {
		again, err := f.attempt(keys, names, fn)
		if again == nil {
			return err
		}
		keys = again
	}
}

// attempt runs fn once. If it met a busy lock, it returns all keys to begin with
// the next time.
func (f *FS) attempt(keys, names []string, fn func(*Tx) error) ([]string, error) {
	var again []string
	_, err := within(f, func(st *state) (struct{}, error) {
		tx := &Tx{f: f, st: st, held: map[string]bool{}, changes: map[string]*change{}}
		defer tx.release()
		tx.lockAll(append(keys, tx.keysOf(names)...))
		err := fn(tx)
		if len(tx.wanted) > 0 {
			again = append(tx.keys(), tx.wanted...)
			return struct{}{}, nil
		}
		if err == nil {
			err = tx.commit()
		}
		return struct{}{}, err
	})
	return again, err
}

// ReadFile returns the content of a regular file of at most Limits.EditBytes
// bytes, links followed.
func (tx *Tx) ReadFile(name string) ([]byte, error) {
	p, c, err := tx.at(name, true)
	if err != nil {
		return nil, forReading(name, err)
	}
	switch {
	case c == nil:
		return tx.f.read(tx.st, name, p)
	case c.remove:
		return nil, &sandbox.PathError{Path: name, Err: fs.ErrNotExist}
	}
	return c.data, nil
}

// An Entry is what a transaction sees at a place.
type Entry struct {
	Path
	Perm fs.FileMode // permission bits; 0 where the file does not exist before the commit
	Size int64       // bytes
}

// Look returns what the entry name is. Without follow it may be a link to
// anywhere.
func (tx *Tx) Look(name string, follow bool) (Entry, error) {
	p, c, err := tx.at(name, follow)
	if err != nil {
		return Entry{}, forReading(name, err)
	}
	e := Entry{Path: p}
	if p.Exists {
		info, err := tx.st.root.Lstat(p.Rel)
		if err != nil {
			return Entry{}, forReading(name, err)
		}
		e.Perm, e.Size = info.Mode().Perm(), info.Size()
	}
	if c != nil {
		e.Exists, e.Type, e.Size = !c.remove, 0, int64(len(c.data))
		if c.mode != nil {
			e.Perm = c.mode.Perm()
		}
	}
	return e, nil
}

// Write plans to create the file name or replace its content, as FS.Write does.
// mode, if not nil, is what its permission bits shall be. data must not be
// changed afterwards.
func (tx *Tx) Write(name string, data []byte, mode *fs.FileMode) error {
	p, c, err := tx.at(name, true)
	if err != nil {
		return explain(name, err, sandbox.ErrNotWritable)
	}
	if c == nil && p.Exists {
		if err := wantRegular(name, p); err != nil {
			return err
		}
	}
	if err := tx.f.guard(name, p); err != nil {
		return err
	}
	tx.plan(&change{name: name, p: p, data: data, mode: mode})
	return nil
}

// Remove plans to remove the entry name: a regular file, or a link itself,
// wherever that leads.
func (tx *Tx) Remove(name string) error {
	e, err := tx.Look(name, false)
	if err != nil {
		return err
	}
	if e.Type&fs.ModeSymlink == 0 {
		if err := wantRegular(name, e.Path); err != nil {
			return err
		}
	}
	if err := tx.f.guard(name, e.Path); err != nil {
		return err
	}
	tx.removes = true
	tx.plan(&change{name: name, p: e.Path, remove: true})
	return nil
}

// plan records a change; a later one for the same entry replaces the earlier.
func (tx *Tx) plan(c *change) {
	c.below = tx.removedAbove(c.p.Rel)
	if old := tx.changes[c.p.Rel]; old != nil {
		if c.mode == nil {
			c.mode = old.mode
		}
		c.p = old.p // what is on the disk
		*old = *c
		return
	}
	tx.changes[c.p.Rel] = c
	tx.order = append(tx.order, c)
}

// at resolves name, locks the place and returns the change already planned for
// it. An entry that a change concerns is no link any more, whatever the disk says.
func (tx *Tx) at(name string, follow bool) (Path, *change, error) {
	p, ok, err := tx.vacated(name)
	if err == nil && !ok {
		p, err = tx.f.resolve(tx.st, name, false)
	}
	if err != nil {
		return Path{}, nil, err
	}
	if c := tx.changes[p.Rel]; c != nil {
		return p, c, nil
	}
	if follow && p.Type&fs.ModeSymlink != 0 {
		if p, err = tx.f.resolve(tx.st, name, true); err != nil {
			return Path{}, nil, err
		}
	}
	if p.IsDir() {
		return p, nil, nil // never written
	}
	if !tx.lock(lockKey(p.Rel)) {
		return Path{}, nil, errBusy
	}
	return p, tx.changes[p.Rel], nil
}

// vacated finds the place of a name that leads through an entry which the
// transaction removes: nothing is there but what the transaction writes.
func (tx *Tx) vacated(name string) (p Path, ok bool, err error) {
	if !tx.removes {
		return Path{}, false, nil
	}
	rel, err := tx.f.clean(tx.st, name)
	if err != nil {
		return Path{}, false, err
	}
	for i := range rel {
		if rel[i] != '/' {
			continue
		}
		dir, err := tx.f.resolve(tx.st, rel[:i], false)
		if err != nil {
			break // so will the name itself
		}
		if c := tx.changes[dir.Rel]; c != nil {
			p = tx.f.path(dir.Rel + rel[i:])
			return p, true, tx.wayTo(name, p.Rel, len(dir.Rel))
		}
	}
	return Path{}, false, nil
}

// wayTo refuses a place below a file that the transaction writes; from is
// where to begin to look.
func (tx *Tx) wayTo(name, rel string, from int) error {
	for i := from; i < len(rel); i++ {
		if rel[i] != '/' {
			continue
		}
		if c := tx.changes[rel[:i]]; c != nil && !c.remove {
			return &sandbox.PathError{Path: name, Parent: rel[:i], Err: sandbox.ErrParentIsFile}
		}
	}
	return nil
}

// removedAbove is the highest entry above rel that the transaction removes.
func (tx *Tx) removedAbove(rel string) string {
	for i := range rel {
		if rel[i] == '/' && tx.removes && tx.changes[rel[:i]] != nil {
			return rel[:i]
		}
	}
	return ""
}
