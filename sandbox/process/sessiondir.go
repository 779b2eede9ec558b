package process

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/internal/disk"
	"github.com/perstack-ai/perstack-base/sandbox/internal/settings"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/environ"
)

// A sessionDir is the private directory of a session. Commands write in its tmp
// and home and read its etc; they can write neither the directory itself nor what
// it lies in, so these names remain what they are. The server works in it by
// handle only.
type sessionDir struct {
	path  string
	root  *os.Root
	cache string // of the workspace; "" for none
}

func (d *sessionDir) tmp() string    { return tmpOf(d.path) }
func (d *sessionDir) home() string   { return filepath.Join(d.path, "home") }
func (d *sessionDir) etc() string    { return filepath.Join(d.path, "etc") }
func (d *sessionDir) passwd() string { return filepath.Join(d.path, "etc", "passwd") }
func (d *sessionDir) group() string  { return filepath.Join(d.path, "etc", "group") }

func tmpOf(dir string) string { return filepath.Join(dir, "tmp") }

// privatePrefix begins the name of every private directory.
const privatePrefix = "perstack-base-"

// newDir makes one in a place, with all that it holds.
func newDir(place string) (*sessionDir, error) {
	path, err := os.MkdirTemp(place, privatePrefix)
	if err != nil {
		return nil, err
	}
	d := &sessionDir{path: path}
	if d.root, err = os.OpenRoot(path); err == nil {
		err = d.fill()
	}
	if err != nil {
		d.remove()
		return nil, err
	}
	return d, nil
}

// fill makes what is missing. Where a command without confinement put something
// else, that goes.
func (d *sessionDir) fill() error {
	for _, name := range []string{"tmp", "home", "etc"} {
		if info, err := d.root.Lstat(name); err == nil && !info.IsDir() {
			_ = d.root.Remove(name)
		}
		if err := d.root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	passwd, group := userTables(d.home())
	for name, text := range map[string]string{"etc/passwd": passwd, "etc/group": group, aptConf: noAptCaches} {
		if err := d.write(name, []byte(text), 0o644); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// Apt, run by root, fails where it cannot write its caches although it may; it
// does without them.
const (
	aptConf     = "etc/apt.conf"
	noAptCaches = "Dir::Cache::pkgcache \"\";\nDir::Cache::srcpkgcache \"\";\n"
)

// whole reports whether nothing is missing.
func (d *sessionDir) whole() bool {
	for _, name := range []string{"tmp", "home", "etc"} {
		if info, err := d.root.Lstat(name); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}

// write makes a new file.
func (d *sessionDir) write(name string, data []byte, mode fs.FileMode) error {
	file, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

// keep makes something in HOME, with the directories above it. What fails is not
// there then, as in any new home.
func (d *sessionDir) keep(name string, create func(name string) error) {
	name = path.Join("home", name)
	if d.root.MkdirAll(path.Dir(name), 0o700) == nil {
		_ = create(name)
	}
}

// lay makes files in a new directory and returns its path.
func (d *sessionDir) lay(files []settings.File) (dir string, err error) {
	name := filepath.Join("etc", fmt.Sprintf("start-%016x", rand.Uint64()))
	if err := d.root.Mkdir(name, 0o700); err != nil {
		return "", err
	}
	dir = filepath.Join(d.path, name)
	for _, file := range files {
		if err := d.write(filepath.Join(name, file.Name), []byte(file.Text), 0o600); err != nil {
			return dir, err
		}
	}
	return dir, nil
}

// unlay removes what lay made.
func (d *sessionDir) unlay(dir string) {
	_ = d.root.RemoveAll(filepath.Join("etc", filepath.Base(dir)))
}

// remove removes it with all that commands left there.
func (d *sessionDir) remove() {
	if d.root != nil {
		d.root.Close()
	}
	removeTree(d.path)
}

// removeTree removes a private directory also when directories in it are not
// writable, as those of a Go module cache are.
func removeTree(dir string) {
	name := filepath.Base(dir)
	parent, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil || !strings.HasPrefix(name, privatePrefix) {
		return
	}
	defer parent.Close()
	_ = disk.RemoveAll(parent, name)
}

// userTables are /etc/passwd and /etc/group for those who may not see the
// machine's: root, nobody, and the user who runs the server, at home in home.
func userTables(home string) (passwd, group string) {
	uid, gid, name := os.Getuid(), os.Getgid(), field(environ.UserName(nil))
	line := func(name string, uid, gid int, home, shell string) {
		passwd += fmt.Sprintf("%s:x:%d:%d:%s:%s:%s\n", name, uid, gid, name, field(home), shell)
	}
	if uid != 0 {
		line("root", 0, 0, "/root", "/bin/sh")
	}
	line(name, uid, gid, home, "/bin/sh")
	if uid != nobody {
		line("nobody", nobody, nobody, "/nonexistent", "/usr/sbin/nologin")
	}
	for id, called := range map[int]string{0: "root", nobody: "nogroup", gid: name} {
		if id == 0 {
			called = "root"
		}
		group += fmt.Sprintf("%s:x:%d:\n", called, id)
	}
	return passwd, group
}

// nobody is the number of the user and group of that name.
const nobody = 65534

// field is text as a field of a table: no colon, no line end, never empty.
func field(text string) string {
	if text = strings.Map(func(r rune) rune {
		if r == ':' || r < ' ' {
			return '_'
		}
		return r
	}, text); text == "" {
		return "/"
	}
	return text
}
