package skill

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/files"
	"github.com/perstack-ai/perstack-base/sandbox/process"
)

// loginTime is how long the user's profile files may take.
const loginTime = 5 * time.Second

// loginAgain is how long a failure is believed: profile files that were slow on a
// busy machine may be quick the next time.
const loginAgain = time.Minute

// A login is the environment of a login shell, resolved once.
type login struct {
	mu    sync.Mutex
	env   []string
	again time.Time // after a failure: when to try again; zero once it is resolved
}

// loginMark stands before the environment: profile files may print.
const loginMark = "\x00perstack-base\x00"

// loginEnv is what commands of skills start from: the environment of the user's
// login shell without what looks secret, HOME as for other commands, and the
// PATH of the server behind the login shell's. When there is no such shell it
// is the server's own. In a container it is nil: what the image says is what there is.
func (s *Session) loginEnv(ctx context.Context) []string {
	if s.shell.Contained() {
		return nil
	}
	l, host := &s.engine.login, s.engine.HostEnv()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.env != nil && (l.again.IsZero() || time.Now().Before(l.again)) {
		return l.env
	}
	if env := s.askLogin(ctx); env != nil {
		l.env, l.again = mergeLogin(host, process.FilterEnv(env, s.engine.PassEnv)), time.Time{}
	} else {
		l.env, l.again = host, time.Now().Add(loginAgain)
	}
	return l.env
}

// askLogin starts a login shell; nil when it does not answer as one should. It
// reads profile files with the secrets in them, so it runs nothing that a command
// could have put on PATH or has the loader find.
func (s *Session) askLogin(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loginTime)
	defer cancel()
	host := s.engine.HostEnv()
	path, back := s.shieldPath(lookupEnv(host, "PATH"))
	bash, env := s.shell.SafeProgram("bash", path), s.shell.SafeProgram("env", path)
	if bash == "" || env == "" {
		return nil
	}
	set := map[string]string{}
	if path != "" {
		set["PATH"] = path
	}
	home := files.HomeDir()
	if home != "" {
		set["HOME"] = home
	}
	script := `printf '\0perstack-base\0'; exec '` + strings.ReplaceAll(env, "'", `'\''`) + `' -0`
	r, err := s.shell.Run(ctx, process.Command{
		Name: bash, Args: []string{"-l", "-c", script}, Env: set, Without: loaded,
		Stdout: true, Keep: 1 << 20, Timeout: loginTime, NoSurvivors: true, Read: profileFiles(home),
	})
	if err != nil || r.ExitCode != 0 || r.TimedOut || !r.Stdout.Complete() {
		return nil
	}
	return parseEnv([]byte(back.Replace(string(slices.Concat(r.Stdout.Head, r.Stdout.Tail)))))
}

// loaded are variables that name what a program loads into itself.
var loaded = []string{"BASH_ENV", "LD_AUDIT", "LD_LIBRARY_PATH", "LD_PRELOAD"}

// shieldPath puts names that nothing can have in the place of the entries of PATH
// that commands decide about; back gives them their names again.
func (s *Session) shieldPath(path string) (shielded string, back *strings.Replacer) {
	var names []string
	entries := filepath.SplitList(path)
	for i, dir := range entries {
		if !s.shell.Safe(dir) {
			entries[i] = fmt.Sprintf("/dev/null/%06d", i)
			names = append(names, entries[i], dir)
		}
	}
	return strings.Join(entries, string(filepath.ListSeparator)), strings.NewReplacer(names...)
}

// profileFiles are what bash reads as a login shell.
func profileFiles(home string) []string {
	files := []string{"/etc/profile", "/etc/profile.d", "/etc/bash.bashrc", "/etc/bashrc", "/etc/environment"}
	if home == "" {
		return files
	}
	for _, name := range []string{".bash_profile", ".bash_login", ".profile", ".bashrc", ".bash_aliases"} {
		files = append(files, home+"/"+name)
	}
	return files
}

// parseEnv reads what env -0 printed, nil when it did not come to that.
func parseEnv(out []byte) []string {
	i := bytes.LastIndex(out, []byte(loginMark))
	if i < 0 {
		return nil
	}
	return strings.Split(strings.TrimRight(string(out[i+len(loginMark):]), "\x00"), "\x00")
}

// sessionOwn are variables that belong to the shell that set them.
var sessionOwn = []string{"_", "SHLVL", "PWD", "OLDPWD", "TMPDIR", "HOME"}

func mergeLogin(host, login []string) []string {
	var env []string
	for _, entry := range login {
		name, _, ok := strings.Cut(entry, "=")
		if ok && name != "" && name != "PATH" && !slices.Contains(sessionOwn, name) {
			env = append(env, entry)
		}
	}
	for _, name := range append([]string{"HOME"}, loaded...) {
		if value := lookupEnv(host, name); value != "" && (name == "HOME" || lookupEnv(login, name) == "") {
			env = append(env, name+"="+value)
		}
	}
	return append(env, "PATH="+joinPath(lookupEnv(login, "PATH"), lookupEnv(host, "PATH")))
}

// joinPath is first with the entries of second that it lacks.
func joinPath(first, second string) string {
	entries := strings.Split(first, ":")
	for _, dir := range strings.Split(second, ":") {
		if !slices.Contains(entries, dir) {
			entries = append(entries, dir)
		}
	}
	return strings.Trim(strings.Join(entries, ":"), ":")
}

// lookupEnv is the last value of a name, "" without one.
func lookupEnv(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if key, value, ok := strings.Cut(env[i], "="); ok && key == name {
			return value
		}
	}
	return ""
}
