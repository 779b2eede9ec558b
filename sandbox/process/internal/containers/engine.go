package containers

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/perstack-ai/perstack-base/sandbox/internal/lazyregexp"
	"github.com/perstack-ai/perstack-base/sandbox/internal/remote"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/environ"
)

// An Engine is the command that runs containers. Where its daemon is, and how it is
// reached, is its own matter.
type Engine struct {
	Command string // as it was given
	path    string

	env      []string // of the command
	mu       sync.Mutex
	looked   bool
	Version  string // as it says
	podman   bool
	nerdctl  bool
	rootless bool // its root is this user
	foreign  bool // its machine does not run this program
}

// DefaultEngine is the command when none is named.
const DefaultEngine = "docker"

// ErrNoEngine: there is no such command. It comes in a *containerError.
var ErrNoEngine = errors.New("no such command")

func findEngine(command string) (*Engine, error) {
	command = cmp.Or(command, DefaultEngine)
	path, err := exec.LookPath(command)
	if err != nil {
		return nil, &Error{What: fmt.Sprintf("--container needs the command %s, which was not found; install it, or name another one with --container-engine, as in --container-engine podman", command), Err: ErrNoEngine}
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	return &Engine{Command: command, path: path}, nil
}

// apartFrom refuses an engine that commands could replace, for it runs outside, and
// keeps it from finding its helpers where they write.
func (e *Engine) apartFrom(writable []string) error {
	if dir := dirAround(e.path, writable); dir != "" {
		return fmt.Errorf("--container needs a command %s that commands of agents cannot replace, and %s lies in %s, where they write; name another one with --container-engine, as in --container-engine /usr/bin/docker", e.Command, e.path, dir)
	}
	path := filepath.SplitList(os.Getenv("PATH"))
	path = slices.DeleteFunc(path, func(entry string) bool { return !filepath.IsAbs(entry) || dirAround(entry, writable) != "" })
	e.env = append(os.Environ(), "PATH="+strings.Join(path, string(filepath.ListSeparator)))
	return nil
}

// dirAround is the first of the directories in which a path lies, by its name or by what
// that leads to; "" for none.
func dirAround(path string, dirs []string) string {
	for _, dir := range dirs {
		for _, name := range []string{filepath.Clean(path), realPath(path)} {
			if belowPath(name, filepath.Clean(dir)) || belowPath(name, realPath(dir)) {
				return dir
			}
		}
	}
	return ""
}

// realPath is a path without links, as far as there is one.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// engineTime is how long an engine may take to answer a question.
const engineTime = 20 * time.Second

// cmd is a command of the engine's, in a process group of its own: keys at the
// server's terminal are not for it. It may be a script that waits for another program,
// which then has its streams as well.
func (e *Engine) cmd(args ...string) *exec.Cmd {
	cmd := exec.Command(e.path, args...)
	apart(cmd)
	cmd.Env, cmd.WaitDelay = e.env, time.Second
	return cmd
}

// ask runs a command of the engine's to its end.
func (e *Engine) ask(ctx context.Context, args ...string) (out, said string, err error) {
	ctx, cancel := context.WithTimeout(ctx, engineTime)
	defer cancel()
	cmd := e.cmd(args...)
	var stdout, stderr lastLines
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		return "", "", e.notStarted(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err = <-done:
	case <-ctx.Done():
		killGroup(cmd)
		<-done
		err = &Error{What: fmt.Sprintf("%s %s did not answer within %v", e.Command, args[0], engineTime),
			Way: "Look whether its daemon runs and answers: " + e.Command + " info."}
	}
	return strings.TrimSpace(stdout.String()), strings.TrimSpace(stderr.String()), err
}

// look finds out what the engine is, once it answers.
func (e *Engine) look(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.looked {
		return nil
	}
	out, said, err := e.ask(ctx, "--version")
	if err != nil {
		return e.failed("", said, cmp.Or(lastLine(said), err.Error()))
	}
	e.Version, _, _ = strings.Cut(remote.Clip(out), "\n")
	e.nerdctl = strings.Contains(strings.ToLower(out), "nerdctl")
	if e.podman = strings.Contains(strings.ToLower(out), "podman"); e.podman {
		e.rootless = os.Getuid() > 0
		e.foreign = runtime.GOOS != "linux"
		e.looked = true
		return nil
	}
	out, said, err = e.ask(ctx, "info", "--format", "{{.OSType}} {{.Architecture}} {{.SecurityOptions}}")
	if err != nil || strings.HasPrefix(out, "  ") {
		return e.failed("", said, cmp.Or(lastLine(said), fmt.Sprint(err)))
	}
	words := strings.Fields(out)
	if len(words) >= 2 {
		e.foreign = words[0] != runtime.GOOS || goArch(words[1]) != runtime.GOARCH
	}
	e.rootless = strings.Contains(out, "name=rootless")
	e.looked = true
	return nil
}

// goArch is what Go calls a machine.
func goArch(machine string) string {
	switch machine {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	}
	return machine
}

// The program of the server in a container, and what an image has to have itself
// where it is another one's.
const (
	runnerPath    = "/.perstack-base"
	runnerName    = "perstack-base"
	RunnerCommand = "runner"
)

// TmpInside is the container's own, in memory.
const TmpInside = "/tmp"

// runArgs are the arguments by which the engine runs a container.
func (f *Fleet) runArgs(b *Container) ([]string, error) {
	e := f.engine
	args := []string{"run", "--rm", "-i", "--init=false", "--name", b.Name,
		"--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
		"--log-driver", "none", "--workdir", "/"} // one that is not there would be made, and hide that
	if own := b.Mounts.around(TmpInside); own == nil || own.At != TmpInside {
		args = append(args, "--tmpfs", TmpInside+":exec,mode=1777") // which would hide one of this machine
	}
	for name, value := range f.labels(b) {
		args = append(args, "--label", name+"="+value)
	}
	if f.Network.Closed() {
		args = append(args, "--network", "none")
	}
	if !e.nerdctl { // which runs none
		args = append(args, "--no-healthcheck") // it would run beside the runner, confined by nothing but the container
	}
	args = append(args, e.userFlags()...)
	args = append(args, e.limitFlags(f.Config)...)
	if environ.Exists("/sys/fs/selinux/enforce") {
		args = append(args, "--security-opt", "label=disable") // the files are the user's, not the engine's to label
	}
	for _, m := range append(Mounts{{from: b.Tree, At: f.TreeAt(b.Tree), Write: true}}, b.Mounts...) {
		if m.git && (b.Bare || belowPath(m.At, TmpInside)) {
			m.Write = false // git outside would follow the links that commands make there
		}
		flag, err := m.flag()
		if err != nil {
			return nil, err
		}
		args = append(args, "--mount", flag)
	}
	for _, path := range b.covers() {
		flag, err := Mount{from: os.DevNull, At: path}.flag()
		if err != nil {
			return nil, err
		}
		args = append(args, "--mount", flag)
	}
	program := runnerName
	if !e.foreign {
		own, err := os.Executable()
		if err == nil {
			own, err = filepath.EvalSymlinks(own)
		}
		if err != nil {
			return nil, &Error{What: "the program of this server cannot be found, so it cannot be brought into a container: " + err.Error(),
				Way: "Ask the user to start perstack-base again.", Err: err}
		}
		flag, err := Mount{from: own, At: runnerPath}.flag()
		if err != nil {
			return nil, err
		}
		program = runnerPath
		args = append(args, "--mount", flag)
	}
	return append(args, "--entrypoint", program, f.Image, RunnerCommand), nil
}

// userFlags have commands run as the user who runs the server, as far as files are
// concerned.
func (e *Engine) userFlags() []string {
	switch {
	case os.Getuid() < 0: // Windows has no numbers
		return nil
	case e.podman && e.rootless:
		return []string{"--userns", "keep-id"}
	case e.rootless:
		return []string{"--user", "0:0"}
	}
	return []string{"--user", fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())}
}

// limitFlags are what a container may use of the machine. The number of processes is
// bounded in any case where that needs nothing that a user's own podman may lack.
func (e *Engine) limitFlags(q Config) (flags []string) {
	if q.MaxMemory > 0 {
		bytes := strconv.FormatInt(q.MaxMemory, 10)
		flags = append(flags, "--memory", bytes, "--memory-swap", bytes)
	}
	if q.MaxCPUs > 0 {
		flags = append(flags, "--cpus", strconv.FormatFloat(q.MaxCPUs, 'f', -1, 64))
	}
	if q.Bounded || !e.podman || !e.rootless {
		flags = append(flags, "--pids-limit", strconv.Itoa(q.MaxProcesses+RunnerThreads))
	}
	return flags
}

// RunnerThreads are what a container may have besides commands: for the runner's
// threads, which are made before commands can take all that there are.
const RunnerThreads = 128

// labels say whose a container is.
func (f *Fleet) labels(b *Container) map[string]string {
	sum := sha256.Sum256([]byte(f.Dir))
	return map[string]string{
		"perstack-base.workspace": hex.EncodeToString(sum[:8]),
		"perstack-base.session":   b.Name[strings.LastIndexByte(b.Name, '-')+1:],
		"perstack-base.server":    strconv.Itoa(os.Getpid()) + "@" + bootID(),
	}
}

// flag is a mount as --mount takes it: fields as in CSV.
func (m Mount) flag() (string, error) {
	fields := []string{"type=bind", "source=" + m.from, "target=" + m.At}
	if !m.Write {
		fields = append(fields, "readonly")
	}
	for i, field := range fields {
		if strings.Contains(field, "\r\n") || !utf8.ValidString(field) {
			return "", &Error{What: fmt.Sprintf("%q cannot be brought into a container: to engines, a path is UTF-8 without the line end of Windows", m.At),
				Way: "Ask the user to rename it."}
		}
		if strings.ContainsAny(field, "\",\r\n") {
			fields[i] = `"` + strings.ReplaceAll(field, `"`, `""`) + `"`
		}
	}
	return strings.Join(fields, ","), nil
}

// remove removes containers by force, with the volumes that their image asks for.
func (e *Engine) remove(names ...string) {
	ctx, cancel := context.WithTimeout(context.Background(), removeTime)
	defer cancel()
	_, _, _ = e.ask(ctx, append([]string{"rm", "-f", "-v"}, names...)...)
}

// newContainerName names the server beside a random number, so that others can tell
// whether it still runs; see [engine.sweep].
func newContainerName() string {
	return fmt.Sprintf("perstack-base-%s-%s", serverMark(os.Getpid()), randomName(6))
}

func randomName(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// serverMark names a process of this machine, "" for one that does not run: whose it
// is, the boot, the namespace of its number, the number, and when it began.
func serverMark(pid int) string {
	began := processBegan(pid)
	if began == "" {
		return ""
	}
	return fmt.Sprintf("%s-%.8s-%s-%d-%s", ownerMark(), bootID(), pidNamespace(), pid, began)
}

// ownerMark names this user on this machine. A daemon may serve several of either, and
// of the others' processes nothing is known here.
var ownerMark = sync.OnceValue(func() string {
	host, _ := os.Hostname()
	machine, _ := os.ReadFile("/etc/machine-id") // is the same in copies of an image
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", machine, host, os.Getuid()))
	return hex.EncodeToString(sum[:4])
})

var containerName = lazyregexp.New(`^perstack-base-([0-9a-f]+)-([0-9a-f]+)-([0-9]+)-([0-9]+)-([0-9]+)-[0-9a-f]+$`)

// abandonedName reports whether a container's name says that its server is gone: one
// of this user on this machine before it was started again, or one that this process
// would see and does not.
func abandonedName(name string) bool {
	m := containerName.FindStringSubmatch(name)
	if m == nil || m[1] != ownerMark() {
		return false
	}
	if m[2] != fmt.Sprintf("%.8s", bootID()) {
		return true
	}
	pid, err := strconv.Atoi(m[4])
	return err == nil && m[3] == pidNamespace() && m[5] != processBegan(pid)
}

// sweep removes what servers left that do not run any more.
func (e *Engine) sweep(ctx context.Context) {
	out, _, err := e.ask(ctx, "ps", "--all", "--filter", "label=perstack-base.server", "--format", "{{.Names}}")
	if err != nil {
		return
	}
	var left []string
	for _, name := range strings.Fields(out) {
		if abandonedName(name) {
			left = append(left, name)
		}
	}
	if len(left) > 0 {
		e.remove(left...)
	}
}
