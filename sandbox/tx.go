package sandbox

import (
	"errors"
	"io/fs"
)

// A Tx reads files and collects changes that take effect together, or not at
// all. Its reads see its own changes. Everything a Tx names is locked against
// other writers of the FS until the transaction ends.
type Tx struct {
	f       *FS
	st      *state
	held    map[string]bool // lock keys
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
		return nil, &PathError{Path: name, Err: fs.ErrNotExist}
	}
	return c.data, nil
}

// Lstat returns where the entry name is, whether it exists and of which type,
// without following it: it may be a link to anywhere.
func (tx *Tx) Lstat(name string) (Path, error) { return tx.look(name, false) }

// Stat is Lstat with links followed.
func (tx *Tx) Stat(name string) (Path, error) { return tx.look(name, true) }

func (tx *Tx) look(name string, follow bool) (Path, error) {
	p, c, err := tx.at(name, follow)
	if err != nil {
		return Path{}, forReading(name, err)
	}
	if c != nil {
		p.Exists, p.Type = !c.remove, 0
	}
	return p, nil
}

// Mode returns the permission bits of the regular file name, links followed.
func (tx *Tx) Mode(name string) (fs.FileMode, error) {
	p, c, err := tx.at(name, true)
	if err != nil {
		return 0, forReading(name, err)
	}
	if c != nil && c.mode != nil {
		return *c.mode, nil
	}
	info, err := tx.st.root.Lstat(p.Rel)
	if err != nil {
		return 0, forReading(name, err)
	}
	return info.Mode().Perm(), nil
}

// Write plans to create the file name or replace its content, as FS.Write does.
// mode, if not nil, is what its permission bits shall be. data must not be
// changed afterwards.
func (tx *Tx) Write(name string, data []byte, mode *fs.FileMode) error {
	p, c, err := tx.at(name, true)
	if err != nil {
		return explain(name, err, ErrNotWritable)
	}
	if c == nil && p.Exists {
		if err := wantRegular(name, p); err != nil {
			return err
		}
	}
	tx.plan(&change{name: name, p: p, data: data, mode: mode})
	return nil
}

// Remove plans to remove the entry name: a regular file, or a link itself,
// wherever that leads.
func (tx *Tx) Remove(name string) error {
	p, err := tx.look(name, false)
	if err != nil {
		return err
	}
	if p.Type&fs.ModeSymlink == 0 {
		if err := wantRegular(name, p); err != nil {
			return err
		}
	}
	tx.plan(&change{name: name, p: p, remove: true})
	return nil
}

// plan records a change; a later one for the same entry replaces the earlier.
func (tx *Tx) plan(c *change) {
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
	p, err := tx.f.resolve(tx.st, name, false)
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
	if !tx.lock(lockKey(p.Rel)) {
		return Path{}, nil, errBusy
	}
	return p, tx.changes[p.Rel], nil
}
