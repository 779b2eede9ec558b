//go:build unix

package tree

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/private"
)

// WatchdogName is argv[0] of the process that outlives the server.
// It is not called like the program: what ends servers by their name spares it.
const WatchdogName = "command-watchdog"

// markVar and serverVar tell it the mark that all commands of the server have, and
// the server's process id.
const (
	markVar   = "COMMAND_MARK"
	serverVar = "COMMAND_SERVER"
)

// hooked is set once the program has called Helpers: only then may it be
// executed again, for otherwise a second server would start.
var hooked bool

// Helpers must be the first call of main (and of TestMain) of a program that can be executed
// again, as the process that a [Commands] starts to end all commands when the server has
// died, however it died. In that process nothing gets as far as here: see init.
func Helpers() { hooked = true }

// In that process init does the work and never returns. It does not wait for main: what
// other packages prepare takes longer than a command does.
func init() {
	if len(os.Args) == 1 && os.Args[0] == WatchdogName {
		signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGPIPE)
		mark, _ := strconv.ParseUint(os.Getenv(markVar), 10, 64)
		server, _ := strconv.Atoi(os.Getenv(serverVar))
		heed(os.Stdin).EndAll(proc.Mark(mark), server, sandbox.DefaultLimits.KillGrace)
		os.Exit(0)
	}
}

// A Watchdog is the server's end of the line to that process. Its messages are
// lines: +pgid and -pgid for groups, and the same with a quoted path for the
// private directories of sessions.
type Watchdog struct {
	once sync.Once
	line *os.File // written to without ever blocking
}

// Start opens the line at once, so that nothing is lost, and has the process started on the
// side. Whoever says something does it, too.
func (w *Watchdog) Start() {
	w.once.Do(func() {
		if !hooked {
			return
		}
		read, write, err := os.Pipe()
		if err != nil {
			return
		}
		w.line = write
		go func() {
			defer read.Close()
			runWatchdog(read)
		}()
	})
}

// runWatchdog starts the process and collects it when it ends.
func runWatchdog(stdin *os.File) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer null.Close()
	exe := "/proc/self/exe" // the running file, also when a newer one took its place
	if _, err := os.Stat(exe); err != nil {
		if exe, err = os.Executable(); err != nil {
			return
		}
	}
	pid, err := proc.Start(func() (int, error) {
		return syscall.ForkExec(exe, []string{WatchdogName}, &syscall.ProcAttr{
			Dir:   "/",
			Env:   []string{"GOMAXPROCS=1", fmt.Sprintf("%s=%d", markVar, proc.OwnMark()), fmt.Sprintf("%s=%d", serverVar, os.Getpid())},
			Files: []uintptr{stdin.Fd(), null.Fd(), null.Fd()},
			Sys:   &syscall.SysProcAttr{Setsid: true},
		})
	})
	if err != nil {
		return
	}
	_ = stdin.Close()
	_, _ = proc.Wait(pid)
}

func (w *Watchdog) say(line string) {
	w.Start()
	if w.line != nil {
		_ = w.line.SetWriteDeadline(time.Now().Add(time.Millisecond))
		_, _ = io.WriteString(w.line, line)
	}
}

func (w *Watchdog) groupBegins(pgid int) { w.say("+" + strconv.Itoa(pgid) + "\n") }
func (w *Watchdog) groupEnds(pgid int)   { w.say("-" + strconv.Itoa(pgid) + "\n") }

// DirBegins has a private directory removed when the server has died; DirEnds says that it is gone.
func (w *Watchdog) DirBegins(path string) { w.say(fmt.Sprintf("+%q\n", path)) }
func (w *Watchdog) DirEnds(path string)   { w.say(fmt.Sprintf("-%q\n", path)) }

// Close ends the watchdog, which finds nothing left to do.
func (w *Watchdog) Close() {
	w.once.Do(func() {})
	if w.line != nil {
		_ = w.line.Close()
	}
}

// A Charge is what the watchdog was told of and not released from.
type Charge struct {
	Groups map[int]bool
	Dirs   map[string]bool
}

// heed follows the line until the server hangs up.
func heed(line io.Reader) Charge {
	c := Charge{Groups: map[int]bool{}, Dirs: map[string]bool{}}
	for lines := bufio.NewScanner(line); lines.Scan(); {
		if len(lines.Bytes()) < 2 {
			continue
		}
		sign, what := lines.Text()[:1], lines.Text()[1:]
		if dir, err := strconv.Unquote(what); err == nil {
			note(c.Dirs, dir, sign)
		} else if pgid, err := strconv.Atoi(what); err == nil && pgid > 1 {
			note(c.Groups, pgid, sign)
		}
	}
	return c
}

func note[K comparable](set map[K]bool, key K, sign string) {
	if strings.HasPrefix(sign, "+") {
		set[key] = true
	} else {
		delete(set, key)
	}
}

// EndAll asks everything to end, and after the grace period kills it and
// removes the private directories. Who was forked during a look at the processes
// is found by the next.
func (c Charge) EndAll(mark proc.Mark, server int, grace time.Duration) {
	if len(c.Groups)+len(c.Dirs) == 0 {
		return
	}
	for deadline := time.Now().Add(grace); ; time.Sleep(20 * time.Millisecond) {
		if c.Signal(unix.SIGTERM); !c.groupsAlive() || time.Now().After(deadline) {
			break
		}
	}
	c.Signal(unix.SIGKILL)
	if orphaned(server) {
		killBearers(mark)
	}
	for dir := range c.Dirs {
		private.Remove(dir)
	}
}

// orphaned reports whether the server has died. One that lives on has only closed
// the line: the mark is that of all of its commands, and its own while it starts one.
func orphaned(server int) bool {
	for begun := time.Now(); os.Getppid() == server; time.Sleep(time.Millisecond) {
		if time.Since(begun) > time.Second { // a process that ends hangs up first
			return false
		}
	}
	return true
}

func killBearers(mark proc.Mark) {
	const looks, most = 5, 30 * time.Second
	for empty, begun := 0, time.Now(); empty < looks && time.Since(begun) < most; time.Sleep(time.Millisecond) {
		empty++
		for _, pid := range mark.Bearers() {
			_ = proc.Signal(pid, unix.SIGKILL) // gone is as good
			empty = 0
		}
	}
}

func (c Charge) groupsAlive() bool {
	for pgid := range c.Groups {
		if proc.Signal(-pgid, 0) == nil {
			return true
		}
	}
	return false
}

func (c Charge) Signal(sig syscall.Signal) {
	for pgid := range c.Groups {
		_ = proc.Signal(-pgid, sig)
	}
	var tmps []string
	for dir := range c.Dirs {
		tmps = append(tmps, private.Temp(dir))
	}
	KillMarked(tmps, sig)
}
