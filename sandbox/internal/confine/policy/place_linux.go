package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Pin looks up what the policy names and keeps it open until [Policy.Close]. A
// path to be read that leads through a writable place is dropped: commands could
// make it lead anywhere, and they can read there anyway.
func (p Policy) Pin() Policy {
	names := p
	p.Read, p.Write, p.Places, p.Dropped, p.roots, p.short, p.met = nil, nil, []Place{}, nil, nil, nil, new(met)
	defer p.met.close()
	p.homes = homesOf(p.Home)
	p.hidden = secretsIn(p.homes)
	p.pinWrites(names.Write)
	for _, path := range names.Read {
		p.pinRead(path, p.Reasons[path])
	}
	for _, dir := range p.Bins {
		p.pinBin(dir)
	}
	p.settle()
	for _, place := range p.Places {
		if place.Covered {
			place.Fd.close()
		}
	}
	p.met = nil
	return p
}

// Short is why places of the policy may be missing that do exist: the system was short
// of what it takes to look them up. Commands would be kept from them, as from /usr/bin.
func (p Policy) Short() error { return p.short }

func (p *Policy) noteShort(err error) {
	if Scarce(err) {
		p.short = fmt.Errorf("looking up what commands may reach: %w", err)
	}
}

// Scarce reports whether an error tells of the system, and nothing of the object that
// was to be opened.
func Scarce(err error) bool {
	return slices.ContainsFunc([]error{unix.EMFILE, unix.ENFILE, unix.ENOMEM}, func(scarce error) bool { return errors.Is(err, scarce) })
}

// walk is walk, and takes down when that says nothing of the path.
func (p *Policy) walk(path string, barriers []FileID) (Place, error) {
	place, err := walk(path, barriers, p.met)
	p.noteShort(err)
	return place, err
}

// With returns the policy with more paths, which are looked up now; release
// closes them.
func (p Policy) With(read, write []string, reason string) (more Policy, release func()) {
	more = p
	more.Read, more.Write = slices.Clone(p.Read), slices.Clone(p.Write)
	more.Places, more.Dropped, more.roots = slices.Clone(p.Places), slices.Clone(p.Dropped), slices.Clone(p.roots)
	more.Reasons, more.Asked = map[string]string{}, absolutes(read)
	opened := more.refresh()
	at := len(more.Places)
	for _, path := range absolutes(write) {
		more.Reasons[path] = reason
	}
	more.pinWrites(absolutes(write))
	for _, path := range more.Asked {
		more.pinRead(path, reason)
	}
	opened = append(opened, more.Places[at:]...)
	more.settle()
	return more, func() { closeAll(opened) }
}

// refresh brings the places up to date and returns those that it opened.
// Whoever replaced a file since (the system's own, for example) did not come
// through a place that commands can write, so the new one is as good. A place
// that was moved remains what it was.
func (p *Policy) refresh() (opened []Place) {
	for i := range p.Places {
		place := &p.Places[i]
		if place.Covered {
			continue
		}
		if place.stat().Nlink > 0 {
			place.From, _ = os.Readlink(place.Fd.path())
			continue
		}
		others := slices.DeleteFunc(slices.Clone(p.roots), func(id FileID) bool { return id == place.ID })
		again, err := p.walk(place.Path, others)
		if err != nil {
			continue
		}
		again.Write, again.Kind, again.Reason = place.Write, place.Kind, place.Reason
		*place = again
		opened = append(opened, again)
		if again.Write {
			p.roots = append(p.roots, again.ID)
		}
	}
	return opened
}

// Close lets go of what Pin opened.
func (p Policy) Close() { closeAll(p.Places) }

func closeAll(places []Place) {
	for _, place := range places {
		place.Fd.close()
	}
}

// Reach opens a regular file for reading that the host's user owns, if no command
// can decide what the path leads to.
func (p Policy) Reach(path string) (*os.File, error) {
	if Below(path, p.Write) {
		return nil, errWritable
	}
	place, err := walk(path, p.roots, nil)
	if err != nil {
		return nil, err
	}
	defer place.Fd.close()
	if st := place.stat(); st.Mode&unix.S_IFMT != unix.S_IFREG || int(st.Uid) != os.Geteuid() {
		return nil, fs.ErrPermission
	}
	return os.Open(place.Fd.path())
}

// Safe reports whether no command can decide what a directory is.
func (p Policy) Safe(dir string) bool {
	place, err := walk(dir, p.roots, nil)
	place.Fd.close()
	return err == nil && !Below(dir, p.Write)
}

// homesOf are the spellings of a directory.
func homesOf(home string) []string {
	if home == "" {
		return nil
	}
	place, err := walk(home, nil, nil)
	if err != nil || place.Real == home {
		return []string{home}
	}
	place.Fd.close()
	return []string{home, place.Real}
}

// pinWrites opens writable places, before any other, for they decide about all
// others. One that is reached through another means nothing of its own.
func (p *Policy) pinWrites(names []string) {
	var first []Place
	for _, path := range names {
		if place, err := p.walk(path, nil); err == nil {
			place.Reason, place.Write = p.Reasons[path], true
			first = append(first, place)
		}
	}
	for _, place := range first {
		others := slices.Clone(p.roots)
		for _, o := range first {
			if o.ID != place.ID {
				others = append(others, o.ID)
			}
		}
		again, err := p.walk(place.Path, others)
		again.Fd.close()
		if err != nil || again.ID != place.ID {
			p.drop(place, errWritable)
			continue
		}
		p.keep(place)
	}
	for _, place := range p.Places {
		if place.Write && !slices.Contains(p.roots, place.ID) {
			p.roots = append(p.roots, place.ID)
		}
	}
}

func (p *Policy) keep(place Place) {
	list := &p.Read
	if place.Write {
		list = &p.Write
	}
	*list = append(*list, place.Path, place.Real)
	p.Places = append(p.Places, place)
}

// drop leaves a place out, and takes down when that is because of commands.
func (p *Policy) drop(place Place, why error) {
	place.Fd.close()
	place.Fd = nil
	if errors.Is(why, errWritable) {
		place.Reason = why.Error()
		p.Dropped = append(p.Dropped, place)
	}
}

// pinRead opens one path to be read.
func (p *Policy) pinRead(path, reason string) { p.pinWithin(path, "/", reason) }

// pinWithin opens one path to be read, unless it really lies outside dir, in what
// nobody granted: whoever may make links in a directory does not decide what else
// can be read.
func (p *Policy) pinWithin(path, dir, reason string) {
	if Below(path, p.Write) {
		p.drop(Place{Path: path}, errWritable)
		return
	}
	place, err := p.walk(path, p.roots)
	place.Reason = reason
	if place.Real == "/proc" && len(place.Links) > 0 { // each process sees its own
		place.Fd.close()
		p.Places = append(p.Places, Place{Path: path, Real: place.Real, Links: place.Links, Reason: reason, Covered: true})
		return
	}
	if err != nil {
		p.drop(place, err)
		return
	}
	asked := slices.Contains(p.Asked, path)
	switch {
	case !Below(place.Real, []string{dir}) && !p.reads(place.Real):
		place.Fd.close()
	case !asked && p.holdsHome(place.Real):
		p.pinAround(place)
	case !asked && (p.secret(path) || p.secret(place.Real)):
		place.Fd.close()
	default:
		p.keep(place)
	}
}

// holdsHome reports whether HOME is path or lies below it.
func (p *Policy) holdsHome(path string) bool {
	return slices.ContainsFunc(p.homes, func(home string) bool { return Below(home, []string{path}) })
}

// pinAround grants what a directory of the system holds besides the HOME in it.
func (p *Policy) pinAround(place Place) {
	defer place.Fd.close()
	if slices.Contains(p.homes, place.Real) {
		return
	}
	for _, entry := range p.list(place) {
		p.pinRead(filepath.Join(place.Real, entry.Name()), place.Reason)
	}
}

// list is what the directory holds.
func (p *Policy) list(place Place) []fs.DirEntry {
	fd, err := unix.Openat(place.Fd.Number(), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		p.noteShort(err)
		return nil
	}
	dir := os.NewFile(uintptr(fd), place.Real)
	defer dir.Close()
	entries, _ := dir.ReadDir(-1)
	return entries
}

// maxPrograms bounds how many programs of one directory are looked at.
const maxPrograms = 512

// pinBin grants a directory of PATH, what the links in it lead to, and of the
// installation that it belongs to what programs need.
func (p *Policy) pinBin(dir string) {
	place, err := p.walk(dir, p.roots)
	if Below(dir, p.Write) {
		err = errWritable
	}
	if err != nil {
		p.drop(place, err)
		return
	}
	defer place.Fd.close()
	if p.reads(place.Real) || !place.is(unix.S_IFDIR) {
		return
	}
	p.pinInstallation(dir)
	p.pinInstallation(place.Real)
	if slices.Contains(vast, place.Real) || p.holdsHome(place.Real) {
		return
	}
	whole := isBin(place.Real)
	if whole {
		p.pinWithin(dir, place.Real, onPath)
	}
	entries := p.list(place)
	for _, entry := range entries[:min(len(entries), maxPrograms)] {
		isLink, dotfile := entry.Type()&fs.ModeSymlink != 0, strings.HasPrefix(entry.Name(), ".")
		if !dotfile && (isLink || !whole && entry.Type().IsRegular()) {
			p.pinProgram(filepath.Join(dir, entry.Name()))
		}
	}
}

// pinProgram grants a file of a directory of PATH, wherever it really is.
func (p *Policy) pinProgram(path string) {
	place, err := p.walk(path, p.roots)
	if err != nil {
		p.drop(place, err)
		return
	}
	defer place.Fd.close()
	switch {
	case !place.is(unix.S_IFREG) || place.stat().Mode&0o111 == 0:
	case !p.reads(place.Real):
		p.pinInstallation(place.Real)
		p.pinWithin(path, place.Real, onPath)
	case len(place.Links) > 0: // the links must be there to lead to it
		p.Places = append(p.Places, Place{Path: path, Real: place.Real, Links: place.Links, Reason: onPath, Covered: true})
	}
}

// pinInstallation grants what programs need of the known installation that dir
// belongs to, as far as it is really there.
func (p *Policy) pinInstallation(dir string) {
	prefix, parts := installation(dir)
	if prefix == "" || p.holdsHome(prefix) {
		prefix, parts = p.marked(dir)
	}
	if prefix == "" || p.reads(prefix) {
		return
	}
	place, err := p.walk(prefix, p.roots)
	place.Fd.close()
	if err != nil || p.holdsHome(place.Real) {
		return
	}
	for _, part := range parts {
		if path := filepath.Join(prefix, part); !slices.Contains(p.Read, path) {
			p.pinWithin(path, place.Real, ofToolchain+prefix)
		}
	}
}

// marked finds an installation by what it holds.
func (p *Policy) marked(dir string) (prefix string, parts []string) {
	for prefix = filepath.Dir(dir); !slices.Contains(vast, prefix) && !p.holdsHome(prefix); prefix = filepath.Dir(prefix) {
		for _, m := range marks {
			if place, err := p.walk(filepath.Join(prefix, m.file), p.roots); err == nil {
				place.Fd.close()
				return prefix, m.parts
			}
		}
	}
	return "", nil
}

// reads reports whether path may be read already.
func (p *Policy) reads(path string) bool { return Below(path, p.Read) || Below(path, p.Write) }

func (place Place) stat() (st unix.Stat_t) {
	_ = unix.Fstat(place.Fd.Number(), &st)
	return st
}

func (place Place) is(kind uint32) bool { return place.stat().Mode&unix.S_IFMT == kind }

// settle sorts the places and finds which are covered by others.
func (p *Policy) settle() {
	slices.SortStableFunc(p.Places, func(a, b Place) int { return strings.Compare(a.Real, b.Real) })
	var read, write []string
	for i := range p.Places {
		place := &p.Places[i]
		if place.Covered = place.Covered || !place.Write && Below(place.Real, read) || Below(place.Real, write); place.Covered {
			continue
		}
		if read = append(read, place.Real); place.Write {
			write = append(write, place.Real)
		}
	}
	p.tidy()
}
