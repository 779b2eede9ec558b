package sandbox

import (
	"io"
	"os"
	"path/filepath"
)

// A Startup is a file that a program reads of its own accord when it starts,
// because a variable names it. It lies in the session's TMPDIR, in a directory of
// its own, for as long as the command runs.
type Startup struct {
	Var   string // the variable
	InDir bool   // which holds the path of the directory instead of the file's
	Name  string // of the file
	Text  string

	// Copy is a file of the host that is laid beside it, called CopyName, where
	// commands are confined and could perhaps not read it themselves. One that
	// is missing, or no regular file of at most maxCopy bytes, is left out.
	Copy, CopyName string
}

const maxCopy = 1 << 20

// write makes the files in a new directory below tmp and returns it.
func (u *Startup) write(tmp string, copying bool) (dir string, err error) {
	if dir, err = os.MkdirTemp(tmp, ".start-"); err != nil {
		return "", err
	}
	err = os.WriteFile(filepath.Join(dir, u.Name), []byte(u.Text), 0o600)
	if err == nil && copying && u.Copy != "" {
		err = u.copy(filepath.Join(dir, u.CopyName))
	}
	return dir, err
}

// copy leaves out what it cannot read: a missing file is no failure.
func (u *Startup) copy(to string) error {
	info, err := os.Stat(u.Copy)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxCopy {
		return nil
	}
	file, err := os.Open(u.Copy)
	if err != nil {
		return nil
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxCopy))
	if err != nil {
		return nil
	}
	return os.WriteFile(to, data, 0o600)
}

// value is what the variable is set to.
func (u *Startup) value(dir string) string {
	if u.InDir {
		return dir
	}
	return filepath.Join(dir, u.Name)
}
