package private

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

// A Dir is the private directory of a session. Commands write in its tmp
// and home and read its etc; they can write neither the directory itself nor what
// it lies in, so these names remain what they are. The server works in it by
// handle only.
type Dir struct {
	Path  string
	Root  *os.Root
	Cache string // of the workspace; "" for none
}

// Tmp and Home are where commands write; Etc is what they read, with Passwd and Group.
func (d *Dir) Tmp() string    { return Temp(d.Path) }
func (d *Dir) Home() string   { return filepath.Join(d.Path, "home") }
func (d *Dir) Etc() string    { return filepath.Join(d.Path, "etc") }
func (d *Dir) Passwd() string { return filepath.Join(d.Path, "etc", "passwd") }
func (d *Dir) Group() string  { return filepath.Join(d.Path, "etc", "group") }

// Temp is the directory for temporary files of a private directory.
func Temp(dir string) string { return filepath.Join(dir, "tmp") }

// Prefix begins the name of every private directory.
const Prefix = "perstack-base-"

// New makes one in a place, with all that it holds.
func New(place string) (*Dir, error) {
	path, err := os.MkdirTemp(place, Prefix)
	if err != nil {
		return nil, err
	}
	d := &Dir{Path: path}
	if d.Root, err = os.OpenRoot(path); err == nil {
		err = d.Fill()
	}
	if err != nil {
		d.Remove()
		return nil, err
	}
	return d, nil
}

// Fill makes what is missing. Where a command without confinement put something
// else, that goes.
func (d *Dir) Fill() error {
	for _, name := range []string{"tmp", "home", "etc"} {
		if info, err := d.Root.Lstat(name); err == nil && !info.IsDir() {
			_ = d.Root.Remove(name)
		}
		if err := d.Root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	passwd, group := userTables(d.Home())
	for name, text := range map[string]string{"etc/passwd": passwd, "etc/group": group, AptConf: noAptCaches} {
		if err := d.Write(name, []byte(text), 0o644); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// Apt, run by root, fails where it cannot write its caches although it may; it
// does without them.
const (
	AptConf     = "etc/apt.conf"
	noAptCaches = "Dir::Cache::pkgcache \"\";\nDir::Cache::srcpkgcache \"\";\n"
)

// Whole reports whether nothing is missing.
func (d *Dir) Whole() bool {
	for _, name := range []string{"tmp", "home", "etc"} {
		if info, err := d.Root.Lstat(name); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}

// Write makes a new file.
func (d *Dir) Write(name string, data []byte, mode fs.FileMode) error {
	file, err := d.Root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

// Keep makes something in HOME, with the directories above it. What fails is not
// there then, as in any new home.
func (d *Dir) Keep(name string, create func(name string) error) {
	name = path.Join("home", name)
	if d.Root.MkdirAll(path.Dir(name), 0o700) == nil {
		_ = create(name)
	}
}

// Lay makes files in a new directory and returns its path.
func (d *Dir) Lay(files []settings.File) (dir string, err error) {
	name := filepath.Join("etc", fmt.Sprintf("start-%016x", rand.Uint64()))
	if err := d.Root.Mkdir(name, 0o700); err != nil {
		return "", err
	}
	dir = filepath.Join(d.Path, name)
	for _, file := range files {
		if err := d.Write(filepath.Join(name, file.Name), []byte(file.Text), 0o600); err != nil {
			return dir, err
		}
	}
	return dir, nil
}

// Unlay removes what lay made.
func (d *Dir) Unlay(dir string) {
	_ = d.Root.RemoveAll(filepath.Join("etc", filepath.Base(dir)))
}

// Remove removes it with all that commands left there.
func (d *Dir) Remove() {
	if d.Root != nil {
		d.Root.Close()
	}
	Remove(d.Path)
}

// Remove removes a private directory also when directories in it are not
// writable, as those of a Go module cache are.
func Remove(dir string) {
	name := filepath.Base(dir)
	parent, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil || !strings.HasPrefix(name, Prefix) {
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
