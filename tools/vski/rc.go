package vski

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/process"
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

// The names of the copies of the shell's own files beside ours. A copy counts
// where there is one: what is hidden can look readable.
const (
	rcCopy  = "rc"
	envCopy = "env"
)

// startup makes a shell read its rc file before the command; nil for shells
// without one. The file is that of the user who runs the server: what the call
// names, commands may have made.
func startup(shell *process.Shell, in execIn, dir string) *process.Startup {
	home, _ := shell.HostEnv("HOME")
	switch path.Base(filepath.ToSlash(in.Shell)) {
	case "bash":
		return bashStartup(in, dir, home, shell.Unset)
	case "zsh":
		if zdotdir, _ := shell.HostEnv("ZDOTDIR"); zdotdir != "" {
			home = zdotdir
		}
		return zshStartup(in, dir, home, shell.Unset)
	}
	return nil
}

// secretsGone takes away what a rc file sets and commands do not get.
type secretsGone func(names, value string) string

func bashStartup(in execIn, dir, home string, unset secretsGone) *process.Startup {
	if home == "" {
		return nil
	}
	rc := home + "/.bashrc"
	own, then := "builtin unset BASH_ENV", ""
	if v, ok := in.Env["BASH_ENV"]; ok {
		own, then = "builtin export BASH_ENV="+quote(v), "builtin . "+quote(v)
	}
	text := script{
		begin: own, files: []string{`"${BASH_SOURCE[0]%/*}/` + rcCopy + `"`, quote(rc)},
		save: save, restore: restore,
		after: unset(bashNames, "${!perstack_n-}") + reset(in.Env, dir, bashOwn), command: in.Command,
	}
	text.guard = onDebug(text.finish())
	return &process.Startup{Var: "BASH_ENV", Name: "bashrc", Text: text.String() + then + "\nbuiltin :\n", Copies: []process.Copy{{From: rc, Name: rcCopy}}}
}

func zshStartup(in execIn, dir, home string, unset secretsGone) *process.Startup {
	if home == "" {
		return nil
	}
	own := "builtin unset ZDOTDIR"
	if v := in.Env["ZDOTDIR"]; v != "" {
		own = "builtin export ZDOTDIR=" + quote(v)
	}
	rc, env := home+"/.zshrc", home+"/.zshenv"
	beside := `"${${(%):-%x}:h}/`
	text := script{
		begin: own + "\nif [[ -f " + beside + envCopy + `" ]]; then builtin . ` + beside + envCopy + `"; elif [[ -f ` + quote(env) + " && -r " + quote(env) + " ]]; then builtin . " + quote(env) + " 2>/dev/null; fi",
		files: []string{beside + rcCopy + `"`, quote(rc)},
		save:  save, restore: restore,
		after: unset(zshNames, "${(P)perstack_n-}") + reset(in.Env, dir, zshOwn), command: in.Command,
	}
	return &process.Startup{Var: "ZDOTDIR", InDir: true, Name: ".zshenv", Text: text.String() + "builtin :\n",
		Copies: []process.Copy{{From: rc, Name: rcCopy}, {From: env, Name: envCopy}}}
}

// The names of variables, as words of the shells: in zsh the exported ones.
var (
	bashNames = bashPrefixes()
	zshNames  = "${(k)parameters[(R)*export*]}"
)

// bashPrefixes names all variables: those that begin with each letter.
func bashPrefixes() string {
	var b strings.Builder
	for c := 'A'; c <= 'z'; c++ {
		if isName(string(c)) {
			fmt.Fprintf(&b, `"${!%c@}" `, c)
		}
	}
	return b.String()
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

const removeTraps = "builtin trap - EXIT TERM\n"

// finish is what comes behind the rc file, if it was not done already.
func (s script) finish() string {
	return removeTraps + "if [[ -e /dev/fd/9 ]]; then\n" + s.restore + "\n" + s.after + "fi\n"
}

func (s script) String() string {
	onTerm := removeTraps + `builtin kill -TERM "$$"`
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
// Variables that a shell does not let others set are left out.
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
