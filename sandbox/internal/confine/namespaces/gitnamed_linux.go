//go:build amd64 || arm64

package namespaces

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"golang.org/x/sys/unix"
)

// use takes down that a repository is used in a work tree, "" for none.
func (g gitGuard) use(tree, git string) { g.useTree(policy.GitTree{Dirs: []string{git}, Tree: tree}) }

func (g gitGuard) useTree(tree policy.GitTree) {
	if len(*g.trees) < maxHeads {
		*g.trees = append(*g.trees, tree)
	}
}

// guardNamed guards what the settings of repositories name. Those of the workspace may name
// anything in it, others only what is in their own tree: commands can make such ones.
func (g gitGuard) guardNamed() error {
	for _, tree := range *g.trees {
		own, git := tree.Tree == g.top, tree.Dirs[0]
		within := []string{git, cmp.Or(tree.Tree, git)}
		for _, named := range tree.Named(g.read) {
			name, below := g.enter(named.Path)
			clean := filepath.Join(g.top, name)
			if !below || !own && !policy.Below(clean, within) || slices.Contains([]string{g.top, git, tree.Tree}, clean) {
				continue
			}
			if named.Hooks && policy.Below(clean, []string{git}) {
				_ = os.MkdirAll(clean, 0o777) // where no hooks are git looks only when somebody pushes
			}
			if err := g.guardSetting(name); err != nil && (own || policy.Scarce(err)) {
				return fmt.Errorf("%s, which git reads, cannot be guarded: %w", name, err)
			}
		}
	}
	return nil
}

// enter returns the name below the top by which a path of the machine comes into it.
func (g gitGuard) enter(path string) (name string, below bool) {
	return policy.EnterTree(path, g.top, realPath)
}

// openOld opens a path as the machine has it.
func openOld(path string, flags uint64) (fd int, err error) {
	root, err := unix.Open(oldRoot, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(root)
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT}
	for range maxTries {
		if fd, err = unix.Openat2(root, path, &how); err != unix.EAGAIN {
			break
		}
	}
	return fd, err
}

// maxTries is how often a path with ".." is followed while directories are renamed.
const maxTries = 100

// realPath resolves the links of a path as the machine has it.
func realPath(path string) (string, error) {
	fd, err := openOld(path, unix.O_PATH)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	real, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	return cmp.Or(strings.TrimPrefix(real, oldRoot), "/"), err
}

// maxSettings is how much of a file of settings is looked at.
const maxSettings = 1 << 20

// read returns the content of a file of the machine, "" for none: of a named pipe, too, that
// a command left where settings name a file.
func (g gitGuard) read(path string) string {
	const flags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := unix.Open(path, flags, 0)
	if err != nil { // commands do not see it
		fd, err = openOld(path, flags)
	}
	if err != nil {
		return ""
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	text, _ := io.ReadAll(io.LimitReader(file, maxSettings))
	return string(text)
}
