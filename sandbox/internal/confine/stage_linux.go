//go:build amd64 || arm64

package confine

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Two short-lived processes make the namespaces, because a program of several
// threads cannot enter them: the first, which unlike the server may be looked
// into and therefore given a user mapping, starts the second inside.
const (
	outerStage = "perstack-base: namespaces"
	innerStage = "perstack-base: mounts"
)

// stageTime is how long it may take to make the namespaces; it takes some ten milliseconds.
const stageTime = 30 * time.Second

// staged is set once the program has called Stage: only then may it be executed again.
var staged bool

// Stage must be called first in main (and in TestMain): in the processes that an
// [Isolator] starts to make namespaces it does that work and never returns, in
// every other it returns at once.
func Stage() {
	staged = true
	if len(os.Args) != 1 {
		return
	}
	var err error
	switch os.Args[0] {
	case outerStage:
		err = beOuterStage()
	case innerStage:
		err = beInnerStage()
	default:
		return
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// A stage is those processes, waiting to be let go.
type stage struct {
	pid int // of the inner one
	cmd *exec.Cmd
	in  io.Closer
}

// startStage returns when the namespaces are ready to be taken.
func startStage(in Isolation) (*stage, error) {
	if !staged {
		return nil, errors.New("this program does not begin with the stage")
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{outerStage}
	cmd.Env = []string{"GOMAXPROCS=1"}
	cmd.Dir = "/"
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &stage{cmd: cmd, in: stdin}
	overdue := time.AfterFunc(stageTime, func() { _ = cmd.Process.Kill() }) // a file system does not answer
	defer overdue.Stop()
	if err := s.converse(stdin, bufio.NewReader(stdout), in); err != nil {
		_ = s.end()
		return nil, err
	}
	return s, nil
}

// converse sends the task and reads two lines: the inner stage's id, and whether
// it is ready.
func (s *stage) converse(to io.Writer, from *bufio.Reader, in Isolation) error {
	if err := json.NewEncoder(to).Encode(in); err != nil {
		return err
	}
	line, err := from.ReadString('\n')
	if _, scanErr := fmt.Sscanf(line, "stage %d", &s.pid); scanErr != nil {
		return stageError(line, err)
	}
	if line, err = from.ReadString('\n'); line != "ready\n" {
		return stageError(line, err)
	}
	return nil
}

func stageError(line string, err error) error {
	if line = strings.TrimSpace(line); line != "" {
		return errors.New(line)
	}
	return fmt.Errorf("the process that makes them ended early: %w", err)
}

// end lets both processes go.
func (s *stage) end() error {
	_ = s.in.Close()
	return s.cmd.Wait()
}

// beOuterStage starts the inner stage in new namespaces and waits for its end.
func beOuterStage() error {
	uids, gids, all := idMaps()
	task, err := bufio.NewReader(os.Stdin).ReadBytes('\n')
	if err != nil {
		return err
	}
	var in Isolation
	if err := json.Unmarshal(task, &in); err != nil {
		return err
	}
	spaces := uintptr(unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC)
	if !in.Policy.Network {
		spaces |= unix.CLONE_NEWNET
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	pid, err := syscall.ForkExec("/proc/self/exe", []string{innerStage}, &syscall.ProcAttr{
		Dir: "/", Env: os.Environ(), Files: []uintptr{read.Fd(), 1, 2},
		Sys: &syscall.SysProcAttr{
			Cloneflags: spaces, UidMappings: uids, GidMappings: gids, GidMappingsEnableSetgroups: all,
			AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN}, Pdeathsig: unix.SIGKILL,
		},
	})
	if err != nil {
		return fmt.Errorf("the system does not permit them (%w)", err)
	}
	read.Close()
	fmt.Printf("stage %d\n", pid)
	if _, err := write.Write(task); err == nil {
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
	write.Close()
	_, err = syscall.Wait4(pid, nil, 0, nil)
	return err
}

// idMaps are the ids of the new user namespace: the same as outside, all that
// root may map, or the user's own.
func idMaps() (uids, gids []syscall.SysProcIDMap, all bool) {
	if os.Geteuid() == 0 {
		uids, gids = readIDMap("/proc/self/uid_map"), readIDMap("/proc/self/gid_map")
		if uids != nil && gids != nil {
			return uids, gids, true
		}
	}
	uid, gid := os.Geteuid(), os.Getegid()
	return []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
		[]syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}, false
}

func readIDMap(name string) (ids []syscall.SysProcIDMap) {
	text, _ := os.ReadFile(name)
	for line := range strings.Lines(string(text)) {
		var first, outside, size int
		if _, err := fmt.Sscan(line, &first, &outside, &size); err == nil {
			ids = append(ids, syscall.SysProcIDMap{ContainerID: first, HostID: first, Size: size})
		}
	}
	return ids
}

// beInnerStage makes what the namespaces hold, and waits to be let go.
func beInnerStage() error {
	stdin := bufio.NewReader(os.Stdin)
	var in Isolation
	task, err := stdin.ReadBytes('\n')
	if err != nil {
		return err
	}
	if err := json.Unmarshal(task, &in); err != nil {
		return err
	}
	if err := arrange(in); err != nil {
		return err
	}
	if !in.Policy.Network {
		if err := raiseLoopback(); err != nil {
			return fmt.Errorf("loopback: %w", err)
		}
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, stdin)
	return nil
}

// raiseLoopback starts the only interface that a new network namespace has.
func raiseLoopback() error {
	sock, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(sock)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(sock, unix.SIOCSIFFLAGS, req)
}
