package files

import (
	"errors"
	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/internal/disk"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// A step is one change on its way to the disk. Whatever can fail for want of
// space or permission happens before the first step is applied.
type step struct {
	c       *change
	t       *target
	tmp     *disk.Temp // the new content; nil for a removal
	old     *disk.Temp // the old file under a second name; nil if there was none, or it was a link
	link    string     // the target of a link to be removed
	last    entry      // where the new content went
	applied bool

	below  bool       // a removal has to make room for the directories of t.base
	made   []entry    // those that were made, outermost first
	opened []*os.Root // those that were entered
}

// An entry is a name in an open directory.
type entry struct {
	in   *os.Root
	name string
}

// commit applies all changes or none.
func (tx *Tx) commit() error {
	tx.f.parents.RLock()
	steps, err := tx.prepare()
	if err == nil {
		err = applyAll(steps, tx.f.Durable)
	}
	if err != nil {
		err = undo(steps, err)
	}
	targets := finish(steps)
	tx.f.parents.RUnlock()
	if err != nil {
		tx.f.takeBack(targets...)
	}
	return err
}

// prepare makes the steps; after an error those that were begun.
func (tx *Tx) prepare() ([]*step, error) {
	steps := make([]*step, 0, len(tx.order))
	for _, c := range tx.order {
		if c.remove && !c.p.Exists {
			continue // written and removed within the transaction
		}
		s := &step{c: c}
		steps = append(steps, s)
		if err := s.prepare(tx); err != nil {
			return steps, explain(c.name, err, sandbox.ErrNotWritable)
		}
	}
	return steps, nil
}

func applyAll(steps []*step, durable bool) error {
	for _, s := range steps {
		if err := s.apply(durable); err != nil {
			return explain(s.c.name, err, sandbox.ErrNotWritable)
		}
	}
	return nil
}

// prepare writes the new content beside the target and gives the old a second
// name.
func (s *step) prepare(tx *Tx) error {
	var err error
	switch {
	case s.c.remove:
		s.t, err = tx.f.entry(tx.st, s.c.p)
	case s.c.below != "":
		err = s.prepareBelow(tx)
	default:
		s.t, err = tx.f.target(tx.st, s.c.name, s.c.p)
	}
	if err != nil {
		return err
	}
	if !s.c.remove {
		if s.tmp, err = disk.Stage(s.t.dir, s.c.data, s.t.info, s.c.mode); err != nil {
			return err
		}
	}
	return s.keepOld()
}

// entry is target for an entry that will be removed: of whatever permissions,
// and nothing is created.
func (f *FS) entry(st *state, p Path) (*target, error) {
	t := &target{st: st, base: path.Base(p.Rel)}
	var err error
	if t.dir, err = st.pin(path.Dir(p.Rel)); err == nil {
		t.info, err = t.dir.Lstat(t.base)
	}
	return t, err
}

// prepareBelow is for a file below an entry that is still to be removed: it
// waits beside that entry, and its directories are made when the step is applied.
func (s *step) prepareBelow(tx *Tx) error {
	above := s.c.below
	s.t = &target{st: tx.st, base: path.Base(above) + s.c.p.Rel[len(above):]}
	if !tx.changes[above].remove {
		return &sandbox.PathError{Path: s.c.name, Parent: above, Err: sandbox.ErrParentIsFile}
	}
	s.below = true
	var err error
	s.t.dir, err = tx.st.pin(path.Dir(above))
	return err
}

// descend makes the directories that a removal has made room for, and moves the
// step into the last of them. The new content is written again there: to rename it
// by a path would be to follow what somebody put in the place of a directory.
func (s *step) descend() error {
	dir, names := s.t.dir, strings.Split(s.t.base, "/")
	for _, name := range names[:len(names)-1] {
		err := dir.Mkdir(name, 0o777)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		sub, enterErr := enter(dir, name)
		if enterErr != nil {
			return enterErr
		}
		s.opened = append(s.opened, sub)
		if err == nil {
			s.made = append(s.made, entry{dir, name})
		}
		dir = sub
	}
	err := s.tmp.Discard()
	s.tmp = nil
	if err == nil {
		s.tmp, err = disk.Stage(dir, s.c.data, nil, s.c.mode)
	}
	s.last = entry{dir, names[len(names)-1]}
	return err
}

func (s *step) keepOld() error {
	info := s.t.info
	if info == nil {
		return nil
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		var err error
		s.link, err = s.t.dir.Readlink(s.t.base)
		return err
	}
	if disk.RenamesOpen { // a second name is held open, and would keep the file from being replaced
		var err error
		if s.old, err = secondName(s.t.dir, s.t.base); err == nil {
			return nil
		}
	}
	// No hard links here, or the file is a mount point: a copy.
	data, err := readAll(s.t.dir, s.t.base)
	if err != nil {
		return err
	}
	perm := info.Mode().Perm()
	s.old, err = disk.Stage(s.t.dir, data, info, &perm)
	return err
}

func readAll(dir *os.Root, base string) ([]byte, error) {
	file, err := disk.OpenRegular(dir, base, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(file)
}

// secondName links base to a temp name, so that putting it back needs no space.
func secondName(dir *os.Root, base string) (*disk.Temp, error) {
	return disk.NewTemp(dir, func(name string) (*os.File, error) {
		if err := dir.Link(base, name); err != nil {
			return nil, err
		}
		file, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if errors.Is(err, fs.ErrPermission) {
			return nil, nil // ours, but not readable: it can do without a lock
		}
		if err == nil && !disk.LockFile(file, false) {
			file.Close()
			err = errBusy // somebody locks the file itself for their own purpose
		}
		if err != nil {
			_ = dir.Remove(name)
			return nil, err
		}
		return file, nil
	})
}

func (s *step) apply(durable bool) error {
	if s.c.remove {
		err := s.t.dir.Remove(s.t.base)
		s.applied = err == nil
		return err
	}
	s.last = entry{s.t.dir, s.t.base}
	if s.below {
		err := s.descend()
		s.applied = len(s.made) > 0
		if err != nil {
			return err
		}
	}
	err := s.tmp.Replace(s.last.name, durable)
	s.applied = s.applied || err == nil || s.tmp.Gone
	return err
}

// undo takes back what was applied, latest first.
func undo(steps []*step, cause error) error {
	var names []string
	for i := len(steps) - 1; i >= 0; i-- {
		s := steps[i]
		if s.below && s.tmp != nil && !s.tmp.Gone { // it would keep its directory from being removed
			_ = s.tmp.Discard()
			s.tmp = nil
		}
		if s.applied && s.restore() != nil {
			names = append(names, s.c.p.Rel)
		}
	}
	if names == nil {
		return cause
	}
	return &sandbox.RestoreError{Names: names, Err: cause}
}

// restore puts back what was there before the step.
func (s *step) restore() error {
	switch {
	case s.link != "":
		if !s.c.remove {
			if err := s.t.dir.Remove(s.t.base); err != nil {
				return err
			}
		}
		return s.t.dir.Symlink(s.link, s.t.base)
	case s.old != nil:
		return s.old.Replace(s.t.base, false)
	}
	return s.takeAway()
}

// takeAway removes a new file, if it came that far, and its new directories.
func (s *step) takeAway() error {
	var err error
	if s.tmp != nil && s.tmp.Gone {
		err = s.last.in.Remove(s.last.name)
	}
	for i := len(s.made) - 1; i >= 0 && err == nil; i-- {
		err = s.made[i].in.Remove(s.made[i].name)
	}
	return err
}

// finish removes what the transaction needed on the disk and nobody else does.
// A second name that cannot be removed is left to the next write beside it.
func finish(steps []*step) []*target {
	var targets []*target
	for _, s := range steps {
		for _, tmp := range []*disk.Temp{s.tmp, s.old} {
			if tmp != nil {
				_ = tmp.Discard()
			}
		}
		for _, dir := range s.opened {
			dir.Close()
		}
		s.t.close()
		targets = append(targets, s.t)
	}
	return targets
}
