//go:build amd64 || arm64

package namespaces

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// gitLinks keep the data of repositories free of links that commands make. Git outside
// follows them: the message of a commit, a log, the index or a list of fetched branches
// would be written to its settings, or to any file of its user's. Git itself makes no links
// but those to branches. Commands must be able to write there, so nothing can keep links
// from being made: they are removed when a command has ended.
type gitLinks struct {
	top   *os.File             // what they lie below; nil where it cannot be opened
	first map[string]string    // those that were there before any command, and where they led
	seen  map[string]directory // what the directories held when they were last looked at
}

// A directory is what one held. The time of its last change cannot be set.
type directory struct {
	number  uint64
	changed unix.Timespec
	subs    []string
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
func (l *gitLinks) open(root *os.Root) {
	l.top, _ = root.Open(".")
	l.first, l.seen = map[string]string{}, map[string]directory{}
}

func (l *gitLinks) close() {
	if l.top != nil {
		l.top.Close()
	}
}

// drop removes the links in a git directory; begin takes down instead which there are.
func (l *gitLinks) drop(git string, begin bool) {
	for _, sub := range l.look(git, begin) {
		name := filepath.Base(sub)
		switch {
		case slices.Contains(gitDirs, name): // nothing can be written there
		case name == gitOwnTree:
			for _, tree := range l.look(sub, begin) {
				l.dropBelow(tree, begin)
			}
		case slices.Contains(gitStores, name):
			for _, part := range l.look(sub, begin) {
				if base := filepath.Base(part); base != gitObjects && len(base) != 2 {
					l.dropBelow(part, begin)
				}
			}
		default:
			l.dropBelow(sub, begin)
		}
	}
}

func (l *gitLinks) dropBelow(dir string, begin bool) {
	for dirs := []string{dir}; len(dirs) > 0; dirs = dirs[1:] {
		dirs = append(dirs, l.look(dirs[0], begin)...)
	}
}

// look removes the links in a directory, unless that is what it was when it was last looked
// at, and returns the directories in it. Commands may run that put a link in the way, so
// everything happens in the directory that was opened, which no link led to.
func (l *gitLinks) look(dir string, begin bool) (subs []string) {
	file := l.openInside(dir)
	if file == nil {
		return nil
	}
	defer file.Close()
	var stat unix.Stat_t
	if unix.Fstat(int(file.Fd()), &stat) != nil {
		return nil
	}
	changed := stat.Ctim
	if was, ok := l.seen[dir]; ok && was.changed == changed && was.number == stat.Ino {
		return was.subs
	}
	settled := time.Since(time.Unix(changed.Unix())) > settleTime
	for {
		entries, err := file.ReadDir(lookAt)
		for _, entry := range entries {
			switch {
			case entry.IsDir():
				subs = append(subs, filepath.Join(dir, entry.Name()))
			case entry.Type()&fs.ModeSymlink != 0:
				l.judge(file, dir, entry.Name(), begin)
			}
		}
		if err != nil {
			break
		}
	}
	if delete(l.seen, dir); settled && len(l.seen) < maxSeen {
		l.seen[dir] = directory{stat.Ino, changed, subs}
	}
	return subs
}

// lookAt is how many entries of a directory are held at a time: commands make as many as
// they like.
const lookAt = 1000

// openInside opens a directory below the root that no link leads to, nil for none.
func (l *gitLinks) openInside(dir string) *os.File {
	if l.top == nil {
		return nil
	}
	fd, err := unix.Openat2(int(l.top.Fd()), dir, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NONBLOCK | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(fd), dir)
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
	if begin {
		l.first[path] = to
	}
	was, known := l.first[path]
	if known && was == to || strings.HasPrefix(to, "refs/") && filepath.Clean(to) == to {
		return
	}
	if unix.Unlinkat(at, name, 0) == nil && known {
		_ = unix.Symlinkat(was, at, name)
	}
}
