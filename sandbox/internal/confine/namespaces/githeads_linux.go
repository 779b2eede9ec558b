//go:build amd64 || arm64

package namespaces

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// gitHeads keep repositories what git takes for repositories. Git passes over a .git
// without a HEAD that it accepts, and then takes the directory around it for one, with
// settings that commands can write. Commands must be able to replace HEAD, so no mount
// can keep it: what git would not accept is put back when a command has ended, and links
// that it would write through are removed. It is safe for concurrent use.
type gitHeads struct {
	root *os.Root

	mu    sync.Mutex
	links gitLinks
	last  map[string]string // by git directory, below the root: the last HEAD that git accepts
}

// maxHeads bounds how many repositories are looked at when a command ends. Where there are
// more, nothing is guarded: commands could make others that are found sooner than the user's.
// The kernel permits mounts for about as many.
const maxHeads = 5000

// gitHead is the name of a HEAD.
const gitHead = "HEAD"

// maxHead is how much of a HEAD git reads to tell what it is.
const maxHead = 255

// keep begins to look after git directories, which lie below the root. Links that were made
// before a time are the user's.
func (h *gitHeads) keep(dirs []string, since unix.Timespec) error {
	h.last = map[string]string{}
	for _, dir := range dirs {
		if rel, err := filepath.Rel(h.root.Name(), dir); err == nil && filepath.IsLocal(rel) {
			h.last[rel] = ""
		}
	}
	h.links.open(h.root, since)
	until := time.Now().Add(beginTime)
	for dir := range h.last {
		if !h.links.drop(dir, true, until) {
			h.last = nil // it is left as it is
			return &GuardError{dir + " holds so many directories that looking for links in it takes too long; remove what is not git's, or end other sessions"}
		}
	}
	for dir := range h.last {
		h.last[dir] = h.mendOne(dir, "")
	}
	return nil
}

const (
	mendTime  = 20 * time.Second // how long links are looked for while commands may run
	beginTime = time.Minute
	endTime   = 10 * time.Minute // when none runs
)

// mend puts back what git needs to see that a directory is a repository, and removes links.
// It reports whether it came to the end within a limit.
func (h *gitHeads) mend(limit time.Duration) (whole bool) {
	if h == nil {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	until := time.Now().Add(limit)
	whole = true
	for dir, last := range h.last {
		whole = h.links.drop(dir, false, until) && whole
		h.last[dir] = h.mendOne(dir, last)
	}
	return whole
}

// close ends that, for whoever takes down how commands end meanwhile, too: the number of
// what is closed would lead to another directory, whose links are nobody's to remove.
func (h *gitHeads) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = nil
	h.links.close()
}

// mendOne puts back the HEAD of a repository, and returns the last that git accepts. Only
// what no link leads to is that repository.
func (h *gitHeads) mendOne(dir, last string) string {
	there := h.links.openInside(dir)
	if there == nil { // its owner may be shut out
		h.open(h.root, dir)
		if there = h.links.openInside(dir); there == nil {
			return last
		}
	}
	defer there.Close()
	git, err := os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", there.Fd()))
	if err != nil {
		return last
	}
	defer git.Close()
	for _, name := range append([]string{"."}, gitData...) {
		h.open(git, name)
	}
	if now := h.read(git); now != "" {
		return now
	}
	if last != "" {
		h.write(git, last)
	}
	return last
}

// open lets the owner into a directory again.
func (h *gitHeads) open(in *os.Root, dir string) {
	const all = 0o700
	if info, err := in.Lstat(dir); err == nil && info.IsDir() && info.Mode()&all != all {
		_ = in.Chmod(dir, info.Mode().Perm()|all)
	}
}

// read returns the HEAD of a git directory, "" for one that git does not accept.
func (h *gitHeads) read(git *os.Root) string {
	if to, err := git.Readlink(gitHead); err == nil {
		if strings.HasPrefix(to, "refs/") {
			return "ref: " + to + "\n"
		}
		return ""
	}
	file, err := git.OpenFile(gitHead, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	data, _ := io.ReadAll(io.LimitReader(file, maxHead))
	text := string(data)
	if to, ok := strings.CutPrefix(text, "ref:"); ok && strings.HasPrefix(strings.TrimLeft(to, " \t\n\r"), "refs/") {
		return text
	}
	if id := text[:min(len(text), 40)]; len(id) == 40 {
		if _, err := hex.DecodeString(id); err == nil {
			return text
		}
	}
	return ""
}

// write replaces a HEAD in one step. What is no file makes room by another name.
func (h *gitHeads) write(git *os.Root, text string) {
	temp := gitHead + "." + rand.Text()
	if info, err := git.Lstat(gitHead); err == nil && info.IsDir() {
		_ = git.Rename(gitHead, temp+".dir")
	}
	file, err := git.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fs.FileMode(0o666))
	if err != nil {
		return
	}
	_, err = file.WriteString(text)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = git.Rename(temp, gitHead)
	}
	if err != nil {
		_ = git.Remove(temp)
	}
}
