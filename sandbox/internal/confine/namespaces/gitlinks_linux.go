//go:build amd64 || arm64

package namespaces

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"golang.org/x/sys/unix"
)

// gitLinks keep the data of repositories free of links that commands make. Git outside
// follows them: the message of a commit, a log, the index or a list of fetched branches
// would be written to its settings, or to any file of its user's. Git itself makes no links
// but those to branches. Commands must be able to write there, so nothing can keep links
// from being made: they are removed when a command has ended.
type gitLinks struct {
	top   *os.File             // what they lie below; nil where it cannot be opened
	since unix.Timespec        // what was made before came from no command
	first map[string]string    // those that were there then, and where they led
	seen  map[string]directory // what the directories held when they were last looked at
	until time.Time            // how long it may take now
}

// A directory is what one held. The time of its last change cannot be set.
type directory struct {
	number  uint64
	changed unix.Timespec
	subs    []string // names
}

// maxSeen bounds the memory of what was looked at; what is not remembered is looked at again.
const maxSeen = 10_000

// settleTime is how long ago a directory must have been changed for its time to tell of
// the next change, too.
const settleTime = 2 * time.Second

// gitStores hold objects in so many directories that these are not looked into: of two
// letters, or another "objects". Nothing there is written by a name that is not made new.
// What tells of the objects, as objects/info/commit-graph, is written through links.
var gitStores = []string{gitObjects, "lfs", "annex"}

const gitObjects = "objects"

// open begins to look at repositories below the root.
func (l *gitLinks) open(root *os.Root, since unix.Timespec) {
	l.top, _ = root.Open(".")
	l.since, l.first, l.seen = since, map[string]string{}, map[string]directory{}
}

func (l *gitLinks) close() {
	if l.top != nil {
		l.top.Close()
	}
}

// drop removes the links in a git directory; begin takes down instead which were there
// before any command. It gives up at a time: commands that run may make
// directories faster than they can be looked at.
func (l *gitLinks) drop(git string, begin bool, until time.Time) (whole bool) {
	l.until = until
	walk := []level{l.look(git, "", begin)}
	for len(walk) > 0 {
		if time.Now().After(until) {
			return false
		}
		at := &walk[len(walk)-1]
		if len(at.subs) == 0 {
			if at.next == 0 {
				walk = walk[:len(walk)-1]
			} else {
				l.more(at)
			}
			continue
		}
		name := at.subs[len(at.subs)-1]
		at.subs = at.subs[:len(at.subs)-1]
		if below := filepath.Join(at.below, name); !skipped(below) {
			walk = append(walk, l.look(git, below, begin))
		}
	}
	return true
}

// skipped reports whether a directory of a repository is not looked into: nothing can be
// written there, or it holds objects.
func skipped(below string) bool {
	parts := strings.SplitN(below, "/", 3)
	switch {
	case len(parts) == 1:
		return slices.Contains(gitDirs, parts[0])
	case len(parts) == 2 && slices.Contains(gitStores, parts[0]):
		return parts[1] == gitObjects || len(parts[1]) == 2
	}
	return false
}

// A level is a directory on the way of a walk: commands may make so many that their names
// do not fit into memory, or in one as many as they like.
type level struct {
	dir, below string   // below the root, and below the repository
	subs       []string // the next directories in it, by name
	next       int64    // where it is read on, 0 where that is all
}

// maxNames bounds the names of one level, in bytes.
const maxNames = 16 << 10

// look removes the links in a directory, unless that is what it was when it was last looked
// at, and returns the directories in it. Commands may run that put a link in the way, so
// everything happens in the directory that was opened, which no link led to.
func (l *gitLinks) look(git, below string, begin bool) level {
	at := level{dir: filepath.Join(git, below), below: below}
	file := l.openInside(at.dir)
	if file == nil {
		return at
	}
	defer file.Close()
	var stat unix.Stat_t
	if unix.Fstat(int(file.Fd()), &stat) != nil {
		return at
	}
	if stat.Mode&unix.S_IXUSR == 0 { // what lies there could be seen, and not reached
		letIn(int(file.Fd()))
	}
	changed := stat.Ctim
	if was, ok := l.seen[at.dir]; ok && was.changed == changed && was.number == stat.Ino {
		at.subs = slices.Clone(was.subs)
		return at
	}
	settled := time.Since(time.Unix(changed.Unix())) > settleTime
	size, wide := 0, false
	for {
		entries, err := file.ReadDir(lookAt)
		for _, entry := range entries {
			switch {
			case entry.IsDir():
				if size += len(entry.Name()); size > maxNames {
					at.subs, wide = nil, true
				}
				if !wide {
					at.subs = append(at.subs, entry.Name())
				}
			case entry.Type()&fs.ModeSymlink != 0:
				l.judge(file, at.dir, entry.Name(), begin)
			}
		}
		if err != nil {
			break
		}
	}
	if delete(l.seen, at.dir); wide {
		at.next = -1 // from the beginning
	} else if settled && len(l.seen) < maxSeen {
		l.seen[at.dir] = directory{stat.Ino, changed, slices.Clone(at.subs)}
	}
	return at
}

// lookAt is how many entries of a directory are held at a time.
const lookAt = 1000

// more reads the next names of directories where there are too many to be held.
func (l *gitLinks) more(at *level) {
	from := max(at.next, 0)
	at.next = 0
	file := l.openInside(at.dir)
	if file == nil {
		return
	}
	defer file.Close()
	fd, names := int(file.Fd()), make([]byte, maxNames)
	if _, err := unix.Seek(fd, from, unix.SEEK_SET); err != nil {
		return
	}
	n, err := unix.ReadDirent(fd, names)
	if err != nil || n <= 0 {
		return
	}
	_, _, entries := unix.ParseDirent(names[:n], -1, nil)
	for _, name := range entries {
		var stat unix.Stat_t
		if unix.Fstatat(fd, name, &stat, unix.AT_SYMLINK_NOFOLLOW) == nil && stat.Mode&unix.S_IFMT == unix.S_IFDIR {
			at.subs = append(at.subs, name)
		}
	}
	at.next, _ = unix.Seek(fd, 0, unix.SEEK_CUR)
}

// openInside opens a directory below the root that no link leads to, nil for none. Its owner
// may be shut out, who can still come to what lies there.
func (l *gitLinks) openInside(dir string) *os.File {
	const read = unix.O_RDONLY | unix.O_NONBLOCK
	fd, err := l.openAt(dir, read)
	if errors.Is(err, fs.ErrPermission) {
		if fd, err = l.openAt(dir, unix.O_PATH); err == nil {
			letIn(fd)
			unix.Close(fd)
			fd, err = l.openAt(dir, read)
		}
	}
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(fd), dir)
}

// openAt opens a directory in a way, and waits for descriptors where there are none.
func (l *gitLinks) openAt(dir string, flags uint64) (fd int, err error) {
	if l.top == nil {
		return -1, fs.ErrNotExist
	}
	how := unix.OpenHow{Flags: flags | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	for {
		fd, err = unix.Openat2(int(l.top.Fd()), dir, &how)
		if (!policy.Scarce(err) && !errors.Is(err, unix.EAGAIN)) || time.Now().After(l.until) {
			return fd, err
		}
		time.Sleep(time.Millisecond)
	}
}

// letIn lets the owner into an open directory again.
func letIn(fd int) {
	const all = 0o700
	var stat unix.Stat_t
	if unix.Fstat(fd, &stat) == nil && stat.Mode&all != all {
		_ = os.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), fs.FileMode(stat.Mode&0o777|all))
	}
}

// judge removes a link in an open directory, or puts back one that was there before any
// command.
func (l *gitLinks) judge(in *os.File, dir, name string, begin bool) {
	at, path, text := int(in.Fd()), filepath.Join(dir, name), make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(at, name, text)
	if err != nil {
		return
	}
	to := string(text[:n])
	if begin && l.older(at, name) {
		l.first[path] = to
	}
	was, known := l.first[path]
	if known && was == to || strings.HasPrefix(to, "refs/") && filepath.Clean(to) == to {
		return
	}
	err = unix.Unlinkat(at, name, 0)
	if errors.Is(err, fs.ErrPermission) {
		letIn(at)
		err = unix.Unlinkat(at, name, 0)
	}
	if err == nil && known {
		_ = unix.Symlinkat(was, at, name)
	}
}

// older reports whether a link was there before any command of this session, or of one that
// it began beside.
func (l *gitLinks) older(at int, name string) bool {
	var stat unix.Stat_t
	if unix.Fstatat(at, name, &stat, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return false
	}
	return before(stat.Ctim, l.since)
}
