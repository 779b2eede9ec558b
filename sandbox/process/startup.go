package process

import (
	"path/filepath"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"github.com/perstack-ai/perstack-base/sandbox/internal/settings"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/environ"
)

// A Startup is a file that a program reads of its own accord when it starts,
// because a variable names it. It lies where commands of the session can read but
// not write, in a directory of its own, for as long as the command runs.
type Startup struct {
	Var   string // the variable
	InDir bool   // which holds the path of the directory instead of the file's
	Name  string // of the file
	Text  string

	// Copies are files of the host that are laid beside it, without the secrets
	// in them: those that commands can perhaps not read themselves. One that is
	// missing, is no regular file of the user's of at most 1 MiB, or is
	// reached through a place that commands can write, is left out.
	Copies []Copy

	copied []settings.File // instead of Copies: they were read on the host
}

// A Copy is a file of the host and the name that its copy gets.
type Copy struct{ From, Name string }

// all are the file and the Copies that are there.
func (u *Startup) all(p policy.Policy, withheld func(name, value string) bool) []settings.File {
	return append([]settings.File{{Name: u.Name, Text: u.Text}}, u.copies(p, withheld)...)
}

// copies reads the Copies that are there.
func (u *Startup) copies(p policy.Policy, withheld func(name, value string) bool) []settings.File {
	files := u.copied
	for _, c := range u.Copies {
		if data, ok := environ.ReadHost(p, c.From); ok {
			files = append(files, settings.File{Name: c.Name, Text: string(environ.WithoutSecrets(data, withheld))})
		}
	}
	return files
}

// value is what the variable is set to.
func (u *Startup) value(dir string) string {
	if u.InDir {
		return dir
	}
	return filepath.Join(dir, u.Name)
}
