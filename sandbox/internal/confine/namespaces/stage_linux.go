//go:build amd64 || arm64

package namespaces

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/gateway"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"golang.org/x/sys/unix"
)

// The mounts of a session are made by a short-lived process of this program,
// which the keeper starts in its namespaces.
const stageName = "perstack-base: mounts"

// stageTime is how long it may take to make the namespaces; it takes some ten milliseconds.
const stageTime = 2 * gateway.TryTime

// stageEnv is the environment of the stage.
var stageEnv = []string{"GOMAXPROCS=1"}

// In the process that an [Isolator] starts to fill its namespaces, init does that
// work and never returns. It does not wait for main: what the packages prepare that
// use this one takes longer than all of it.
func init() {
	if len(os.Args) != 1 || os.Args[0] != stageName {
		return
	}
	made, repositories, err := beStage()
	if err == nil {
		text, _ := json.Marshal(repositories)
		err = unix.Sendmsg(unix.Stdout, fmt.Appendf(nil, "%s%s\n", stageDone, text), unix.UnixRights(made...), nil, 0)
	}
	if err != nil {
		var number unix.Errno
		errors.As(err, &number)
		kind := int(number)
		if guard := (*GuardError)(nil); errors.As(err, &guard) {
			kind = ofGuard
		}
		fmt.Println(kind, strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(1)
	}
	os.Exit(0)
}

// stageDone is what the stage says when all went well, before the repositories that it
// guards.
const stageDone = "ready "

// A stage is that process, seen from outside.
type stage struct {
	task   *os.File      // what it is told
	result *net.UnixConn // what it says
}

// begin has the process started, which waits to be told what to do.
func (k *Keeper) beginStage() (*stage, error) {
	theirTask, task, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirTask.Close()
	result, theirResult, err := resultPair()
	if err != nil {
		task.Close()
		return nil, err
	}
	defer theirResult.Close()
	s := &stage{task, result}
	if err := k.startStage(theirTask, theirResult); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *stage) close() {
	s.task.Close()
	s.result.Close()
}

// fill has the namespaces filled, where sockets are to be covered that are still looked
// for. It returns the descriptors of what a gateway consists of, if one is wanted, and the
// repositories that are guarded.
func (s *stage) fill(in Isolation, sockets <-chan [][]byte) (made []int, repositories []string, err error) {
	defer s.close()
	_ = s.result.SetReadDeadline(time.Now().Add(stageTime)) // a file system may not answer
	in.Policy = in.Policy.Found()
	tell := json.NewEncoder(s.task)
	if err := tell.Encode(in); err != nil {
		return nil, nil, err
	}
	select {
	case found := <-sockets:
		_ = tell.Encode(found) // where it has ended early, it says why
	case <-time.After(stageTime):
		return nil, nil, errors.New("looking for sockets in what commands may read takes too long: a file system does not answer")
	}
	line, made, err := readPassed(s.result)
	if list, ok := strings.CutPrefix(line, stageDone); ok {
		var paths [][]byte // not every path is text
		if err := json.Unmarshal([]byte(list), &paths); err != nil {
			return nil, nil, fmt.Errorf("the repositories of the workspace: %w", err)
		}
		for _, path := range paths {
			repositories = append(repositories, string(path))
		}
		return made, repositories, nil
	}
	if line = strings.TrimSpace(line); line == "" {
		return nil, nil, fmt.Errorf("the process that fills them ended early: %w", err)
	}
	return nil, nil, stageError(line)
}

// resultPair makes two sockets that are connected, ours and one to give away.
func resultPair() (ours *net.UnixConn, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	end := os.NewFile(uintptr(pair[0]), "stage")
	defer end.Close()
	theirs = os.NewFile(uintptr(pair[1]), "stage")
	conn, err := net.FileConn(end)
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return conn.(*net.UnixConn), theirs, nil
}

// readPassed reads a line and the descriptors that come with it, which are for this
// process alone. They come with what the stage says last, when all went well.
func readPassed(from *net.UnixConn) (line string, passed []int, err error) {
	text, rights := make([]byte, 4096), make([]byte, unix.CmsgSpace(gateway.Parts*4))
	for !strings.HasSuffix(line, "\n") && err == nil {
		var n, more int
		n, more, _, _, err = from.ReadMsgUnix(text, rights)
		line += string(text[:n])
		messages, _ := unix.ParseSocketControlMessage(rights[:more])
		for _, m := range messages {
			fds, _ := unix.ParseUnixRights(&m)
			passed = append(passed, fds...)
		}
	}
	return line, passed, err
}

// ofGuard is the number that stands for a [GuardError].
const ofGuard = -1

// stageError is what the stage said, which begins with the number of an error of
// the system, 0 for none.
func stageError(line string) error {
	number, text, _ := strings.Cut(line, " ")
	n, err := strconv.Atoi(number)
	switch {
	case err == nil && n == ofGuard:
		return &GuardError{text}
	case err == nil && n > 0:
		return &os.SyscallError{Syscall: strings.TrimSuffix(text, ": "+unix.Errno(n).Error()), Err: unix.Errno(n)}
	}
	return errors.New(text)
}

// stageCaps are what the stage keeps when it is executed: for mounts, for networks, and
// for sockets of a gateway.
var stageCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_NET_BIND_SERVICE}

// startStage has the keeper execute this program again.
func (k *Keeper) startStage(task, result *os.File) error {
	k.Starting.Lock()
	defer k.Starting.Unlock()
	if err := k.reset(); err != nil {
		return err
	}
	r := &CellRun{arena: k.arena}
	every := unix.CapUserData{Effective: ^uint32(0), Permitted: ^uint32(0), Inheritable: ^uint32(0)}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	steps := []*kernel.Call{r.must(unix.SYS_DUP3, givenIn, 0, 0),
		r.must(unix.SYS_DUP3, givenOut, 1, 0),
		r.must(unix.SYS_DUP3, givenErr, 2, 0),
		r.must(unix.SYS_CLOSE_RANGE, 3, kernel.MaxDescriptor, 0),
		r.must(unix.SYS_CAPSET, pointer(r.arena, header), pointer(r.arena, [2]unix.CapUserData{every, every}))}
	for _, c := range stageCaps {
		steps = append(steps, r.must(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, c, 0, 0))
	}
	r.Exec = r.Add(unix.SYS_EXECVE, r.text("/proc/self/exe"), r.texts([]string{stageName}), r.texts(stageEnv))
	chain(append(steps, r.Exec)...)
	fork := r.must(unix.SYS_CLONE, unix.CLONE_VM|unix.CLONE_VFORK|uintptr(unix.SIGCHLD), 0)
	fork.OrElse = steps[0]
	if err := k.run(fork, fork, int(task.Fd()), int(result.Fd()), int(result.Fd())); err != nil {
		return err
	}
	if e := fork.Errno(); e != 0 {
		return e
	}
	return r.failure()
}

// beStage makes what the namespaces hold.
func beStage() (made []int, repositories [][]byte, err error) {
	told := json.NewDecoder(os.Stdin)
	var in Isolation
	if err := told.Decode(&in); err != nil {
		return nil, nil, err
	}
	sockets := func() (paths [][]byte, err error) { return paths, told.Decode(&paths) }
	if in.Lacks.MountSetattr {
		mountSetattr = func(int, string, uint, *unix.MountAttr) error { return unix.ENOSYS }
	}
	settings := -1
	if in.Gateway {
		if settings, err = gateway.OpenSettings(); err != nil {
			return nil, nil, fmt.Errorf("the settings of networks: %w", err)
		}
	}
	found, err := arrange(in, sockets)
	if err != nil {
		return nil, nil, err
	}
	for _, path := range found[:min(len(found), maxHeads)] {
		repositories = append(repositories, []byte(path))
	}
	if in.Policy.Network {
		return nil, repositories, nil
	}
	if err := gateway.RaiseLoopback(); err != nil {
		return nil, nil, fmt.Errorf("loopback: %w", err)
	}
	if in.Gateway {
		made, err = gateway.Make(settings, in.Lacks.Lacks)
	}
	return made, repositories, err
}
