package vski

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox"
)

// A rc file is read without any trace in the command: the shell is told by a
// variable to read a file of ours when it starts, as bash does with BASH_ENV and
// zsh with ZDOTDIR; that file takes the variable away, reads the rc file with its
// output dropped, sets the call's env again, and leaves the rest to SHELL -c.
//
// A rc file that ends the shell (exit, set -e, an unset variable under set -u)
// meets an EXIT trap that runs the command after all, in a subshell that has all
// that the rc file set. SIGTERM, which is how a deadline comes, takes that trap
// away before it ends the shell.

// Where standard output and error are while the rc file runs: zsh knows no higher
// numbers.
const (
	save    = "exec 8>&1 9>&2"
	restore = "exec 1>&8 2>&9 8>&- 9>&-"
)

// copyName is the name of the copy of the rc file beside ours, which counts where
// there is one: what is hidden can look readable.
const copyName = "rc"

// startup makes a shell read its rc file before the command; nil for shells
// without one.
func startup(shell *sandbox.Shell, in execIn, dir string) *sandbox.Startup {
	value := func(name string) string {
		if v, ok := in.Env[name]; ok {
			return v
		}
		v, _ := shell.HostEnv(name)
		return v
	}
	switch path.Base(filepath.ToSlash(in.Shell)) {
	case "bash":
		return bashStartup(in, dir, value)
	case "zsh":
		return zshStartup(in, dir, value)
	}
	return nil
}

func bashStartup(in execIn, dir string, value func(string) string) *sandbox.Startup {
	home := value("HOME")
	if home == "" {
		return nil
	}
	rc := home + "/.bashrc"
	own, then := "builtin unset BASH_ENV", ""
	if v, ok := in.Env["BASH_ENV"]; ok {
		own, then = "builtin export BASH_ENV="+quote(v), "builtin . "+quote(v)
	}
	text := script{
		begin: own, files: []string{`"${BASH_SOURCE[0]%/*}/` + copyName + `"`, quote(rc)},
		save: save, restore: restore,
		after: reset(in.Env, dir, bashOwn), command: in.Command,
	}
	text.guard = onDebug(text.finish())
	return &sandbox.Startup{Var: "BASH_ENV", Name: "bashrc", Text: text.String() + then + "\nbuiltin :\n", Copy: rc, CopyName: copyName}
}

func zshStartup(in execIn, dir string, value func(string) string) *sandbox.Startup {
	zdotdir := value("ZDOTDIR")
	home := zdotdir
	if home == "" {
		home = value("HOME")
	}
	if home == "" {
		return nil
	}
	own := "builtin unset ZDOTDIR"
	if zdotdir != "" {
		own = "builtin export ZDOTDIR=" + quote(zdotdir)
	}
	rc := home + "/.zshrc"
	text := script{
		begin: own + "\n[[ -r " + quote(home+"/.zshenv") + " ]] && builtin . " + quote(home+"/.zshenv"),
		files: []string{`"${${(%):-%x}:h}/` + copyName + `"`, quote(rc)},
		save:  "exec 8>&1 9>&2", restore: "exec 1>&8 2>&9 8>&- 9>&-",
		after: reset(in.Env, dir, zshOwn), command: in.Command,
	}
	return &sandbox.Startup{Var: "ZDOTDIR", InDir: true, Name: ".zshenv", Text: text.String() + "builtin :\n", Copy: rc, CopyName: copyName}
}

// A script is what a shell does before the command.
type script struct {
	begin         string
	files         []string // the rc file, as words of the shell: the first that is there counts
	guard         string   // right before it is read; may use finish
	save, restore string   // of standard output and error
	after         string   // when the rc file is through
	command       string
}

const free = "builtin trap - EXIT TERM\n"

// finish is what comes behind the rc file, if it was not done already.
func (s script) finish() string {
	return free + "if [[ -e /dev/fd/9 ]]; then\n" + s.restore + "\n" + s.after + "fi\n"
}

func (s script) String() string {
	onTerm := free + `builtin kill -TERM "$$"`
	onExit := s.finish() + "( builtin :; builtin eval " + quote(s.command) + "\n" + `builtin exit "$?" )` + "\n" + `builtin exit "$?"`
	source := make([]string, len(s.files))
	for i, file := range s.files {
		source[i] = fmt.Sprintf("if [[ -f %[1]s && -r %[1]s ]]; then %[2]sbuiltin . %[1]s >/dev/null 2>&1; ", file, s.guard)
	}
	return strings.Join([]string{
		s.begin, s.save,
		"builtin trap " + quote(onTerm) + " TERM", "builtin trap " + quote(onExit) + " EXIT",
		strings.Join(source, "el") + "fi", s.finish(),
	}, "\n")
}

// onDebug is a guard for bash: under set -u it gives up our file for an unset
// variable and goes on to the command by itself. Whatever comes first behind the
// rc file, of ours or of the command, finishes. The trap is first met by the
// command that reads the rc file, so it takes two.
func onDebug(finish string) string {
	armed := "builtin trap " + quote("builtin trap - DEBUG\n"+finish) + " DEBUG"
	return "builtin trap " + quote(armed) + " DEBUG; "
}

// reset sets the call's variables and directory again, whatever the rc file did.
// What a shell takes from nobody is left out.
func reset(env map[string]string, dir string, shellsOwn []string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if isName(name) && !slices.Contains(shellsOwn, name) {
			fmt.Fprintf(&b, "builtin export %s=%s 2>/dev/null || builtin :\n", name, quote(env[name]))
		}
	}
	fmt.Fprintf(&b, "[[ $PWD -ef %[1]s ]] || builtin cd -- %[1]s 2>/dev/null || builtin :\n", quote(dir))
	return b.String()
}

// Variables that a shell sets itself when it starts, whatever the environment says.
var (
	bashOwn = []string{"_", "BASH_ENV", "BASHOPTS", "EUID", "IFS", "OLDPWD", "PPID", "PWD", "SHELLOPTS", "SHLVL", "UID"}
	zshOwn  = []string{"_", "EGID", "EUID", "GID", "IFS", "OLDPWD", "PPID", "PWD", "SHLVL", "UID"}
)

// isName tells whether a shell takes name for that of a variable.
func isName(name string) bool {
	for i := range len(name) {
		c := name[i] | 0x20
		if name[i] != '_' && (c < 'a' || c > 'z') && (i == 0 || name[i] < '0' || name[i] > '9') {
			return false
		}
	}
	return name != ""
}

// quote makes one word of text for a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
