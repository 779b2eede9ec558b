//go:build amd64 || arm64

package namespaces

import (
	"crypto/rand"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

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

// maxHeads bounds how many repositories are looked at when a command ends; the outer ones
// come first.
const maxHeads = 1000

// maxHead is how much of a HEAD git reads to tell what it is.
const maxHead = 255

// keep begins to look after git directories, which lie below the root.
func (h *gitHeads) keep(dirs []string) {
	h.last = map[string]string{}
	for _, dir := range dirs {
		if rel, err := filepath.Rel(h.root.Name(), dir); err == nil && filepath.IsLocal(rel) {
			h.last[rel] = ""
		}
	}
	h.links.open(h.root)
	for dir := range h.last {
		h.links.drop(dir, true)
	}
	h.mend()
}

// mend puts back what git needs to see that a directory is a repository.
func (h *gitHeads) mend() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for dir, last := range h.last {
		h.links.drop(dir, false)
		for _, name := range append([]string{"."}, gitData...) {
			h.open(filepath.Join(dir, name))
		}
		name := filepath.Join(dir, "HEAD")
		if now := h.read(name); now != "" {
			h.last[dir] = now
		} else if last != "" {
			h.write(name, last)
		}
	}
}

// open lets the owner into a directory again.
func (h *gitHeads) open(dir string) {
	const all = 0o700
	if info, err := h.root.Lstat(dir); err == nil && info.IsDir() && info.Mode()&all != all {
		_ = h.root.Chmod(dir, info.Mode().Perm()|all)
	}
}

// read returns a HEAD, "" for one that git does not accept.
func (h *gitHeads) read(name string) string {
	if to, err := h.root.Readlink(name); err == nil {
		if strings.HasPrefix(to, "refs/") {
			return "ref: " + to + "\n"
		}
		return ""
	}
	file, err := h.root.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
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
func (h *gitHeads) write(name, text string) {
	temp := name + "." + rand.Text()
	if info, err := h.root.Lstat(name); err == nil && info.IsDir() {
		_ = h.root.Rename(name, temp+".dir")
	}
	file, err := h.root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fs.FileMode(0o666))
	if err != nil {
		return
	}
	_, err = file.WriteString(text)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = h.root.Rename(temp, name)
	}
	if err != nil {
		_ = h.root.Remove(temp)
	}
}
