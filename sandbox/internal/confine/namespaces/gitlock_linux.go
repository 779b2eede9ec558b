//go:build amd64 || arm64

package namespaces

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// lockText tells who wonders why git cannot lock its settings.
const lockText = "held by perstack-base --sandbox isolate while a session is open that has run commands: " +
	"it keeps them from the settings of git. If no server runs here, remove this file.\n"

// gitLocks keep git, outside too, from replacing the settings of the workspace's
// repository: the new file would not be covered, and commands could write it.
type gitLocks struct {
	root *os.Root
	held []*os.File
	kept map[string]os.FileInfo // what is covered, nil where nothing is; see fallen
	host os.FileInfo            // the host's directory, which is covered, too; nil for none
	pins []*os.File             // all of these, so that no other file gets the number of one

	since unix.Timespec // when it began, the first that it began beside, or one that was killed

	heads *gitHeads
}

// holdLocks takes the locks by which git changes its settings, beside other
// sessions that hold them. One that somebody else holds for long is left alone.
func holdLocks(workspace string) (*gitLocks, error) {
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return nil, err
	}
	l := &gitLocks{root: root, since: beginGuard(root.Name()), heads: &gitHeads{root: root}}
	l.host, _ = root.Lstat(hostDir)
	l.pin(hostDir)
	if info, err := root.Stat(".git"); err != nil || !info.IsDir() {
		return l, nil
	}
	for _, name := range []string{"config.lock", "config.worktree.lock"} {
		deadline := time.Now().Add(lockTime)
		for !l.hold(filepath.Join(".git", name)) && time.Now().Before(deadline) {
			time.Sleep(lockTime / 100)
		}
	}
	return l, nil
}

// lockTime is how long git may take to change its settings.
const lockTime = 2 * time.Second

// hold takes one lock, alone or beside other sessions.
func (l *gitLocks) hold(name string) bool {
	file, err := l.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o444)
	if err == nil {
		_, err = file.WriteString(lockText)
	} else if file, err = l.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0); err == nil {
		text, _ := io.ReadAll(io.LimitReader(file, int64(len(lockText))+1))
		if string(text) != lockText {
			err = os.ErrExist
		}
	} else {
		return false
	}
	if err == nil {
		err = unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	}
	if err != nil || !l.is(name, file) { // whoever was last has removed it
		file.Close()
		return false
	}
	l.held = append(l.held, file)
	var stat unix.Stat_t // its time tells since when, also of a server that had no time to end
	if unix.Fstat(int(file.Fd()), &stat) == nil && before(stat.Ctim, l.since) {
		l.since = stat.Ctim
	}
	return true
}

// guards are the workspaces with sessions in this process: when the first of them began, for
// workspaces without a lock of their own.
var guards = struct {
	sync.Mutex
	began map[string]unix.Timespec
	open  map[string]int
}{began: map[string]unix.Timespec{}, open: map[string]int{}}

// beginGuard takes down that a session begins, and returns since when there are any.
func beginGuard(workspace string) unix.Timespec {
	guards.Lock()
	defer guards.Unlock()
	if guards.open[workspace]++; guards.open[workspace] == 1 {
		var now unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now) // as files have it
		guards.began[workspace] = now
	}
	return guards.began[workspace]
}

func endGuard(workspace string) {
	guards.Lock()
	defer guards.Unlock()
	if guards.open[workspace]--; guards.open[workspace] == 0 {
		delete(guards.open, workspace)
		delete(guards.began, workspace)
	}
}

// before reports whether a time is earlier than another.
func before(a, b unix.Timespec) bool { return a.Sec < b.Sec || a.Sec == b.Sec && a.Nsec < b.Nsec }

// is reports whether a file still has its name.
func (l *gitLocks) is(name string, file *os.File) bool {
	there, err := l.root.Lstat(name)
	mine, err2 := file.Stat()
	return err == nil && err2 == nil && os.SameFile(there, mine)
}

// remember takes down what is covered.
func (l *gitLocks) remember() {
	l.kept = l.look()
	for name := range l.kept {
		l.pin(name)
	}
}

// pin keeps the number of a file from being given to another when it is removed.
func (l *gitLocks) pin(name string) {
	if file, err := l.root.OpenFile(name, unix.O_PATH|unix.O_NOFOLLOW, 0); err == nil {
		l.pins = append(l.pins, file)
	}
}

func (l *gitLocks) look() map[string]os.FileInfo {
	names := slices.Concat([]string{"", gitOwnTree}, gitDirs, gitRemotes)
	for name := range gitFiles {
		names = append(names, name)
	}
	there := map[string]os.FileInfo{}
	for _, name := range names {
		name = filepath.Join(".git", name)
		there[name], _ = l.root.Lstat(name)
	}
	return there
}

// fallen reports whether something covered was replaced, by a program outside that
// asks for no lock, or a repository or the host's directory was made where none was.
func (l *gitLocks) fallen() bool {
	if l == nil {
		return false
	}
	if host, _ := l.root.Lstat(hostDir); another(l.host, host) {
		return true
	}
	for name, now := range l.look() {
		if another(l.kept[name], now) {
			return true
		}
	}
	return false
}

// another reports whether a file, nil for none, is not what it was.
func another(was, now os.FileInfo) bool {
	return (was == nil) != (now == nil) || was != nil && !os.SameFile(was, now)
}

// mend puts back what commands have taken from repositories, and removes links. It reports
// whether it came to the end within a limit.
func (l *gitLocks) mend(limit time.Duration) (whole bool) {
	return l == nil || l.heads.mend(limit)
}

// release removes the locks that no other session holds.
func (l *gitLocks) release() {
	if l == nil {
		return
	}
	l.mend(endTime) // no command is left
	l.heads.close()
	endGuard(l.root.Name())
	for _, file := range l.held {
		name := filepath.Join(".git", filepath.Base(file.Name()))
		if unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && l.is(name, file) {
			_ = l.root.Remove(name)
		}
		file.Close()
	}
	for _, file := range l.pins {
		file.Close()
	}
	l.root.Close()
}
