//go:build amd64 || arm64

package confine

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The mounts of a session are made by a short-lived process of this program,
// which the keeper starts in its namespaces.
const stageName = "perstack-base: mounts"

// stageTime is how long it may take to make the namespaces; it takes some ten milliseconds.
const stageTime = 30 * time.Second

// stageEnv is the environment of the stage.
var stageEnv = []string{"GOMAXPROCS=1"}

// staged is set once the program has called Stage: only then may it be executed again.
var staged bool

// Stage must be called first in main (and in TestMain): in the process that an
// [Isolator] starts to fill its namespaces it does that work and never returns,
// in every other it returns at once.
func Stage() {
	staged = true
	if len(os.Args) != 1 || os.Args[0] != stageName {
		return
	}
	if err := beStage(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(stageDone)
	os.Exit(0)
}

// stageDone is what the stage says when all went well.
const stageDone = "ready"

// stage has the namespaces filled.
func (k *keeper) stage(in Isolation) error {
	theirTask, task, err := os.Pipe()
	if err != nil {
		return err
	}
	defer closeFiles(theirTask, task)
	result, theirResult, err := os.Pipe()
	if err != nil {
		return err
	}
	defer closeFiles(result, theirResult)
	if err := k.startStage(theirTask, theirResult); err != nil {
		return err
	}
	theirTask.Close()
	theirResult.Close()
	_ = result.SetReadDeadline(time.Now().Add(stageTime)) // a file system may not answer
	if err := json.NewEncoder(task).Encode(in); err != nil {
		return err
	}
	line, err := bufio.NewReader(result).ReadString('\n')
	switch line = strings.TrimSpace(line); line {
	case stageDone:
		return nil
	case "":
		return fmt.Errorf("the process that fills them ended early: %w", err)
	}
	return errors.New(line)
}

// startStage has the keeper execute this program again.
func (k *keeper) startStage(task, result *os.File) error {
	k.starting.Lock()
	defer k.starting.Unlock()
	if err := k.reset(); err != nil {
		return err
	}
	r := &cellRun{arena: k.arena}
	every := unix.CapUserData{Effective: ^uint32(0), Permitted: ^uint32(0), Inheritable: ^uint32(0)}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	steps := []*call{r.must(unix.SYS_DUP3, givenIn, 0, 0),
		r.must(unix.SYS_DUP3, givenOut, 1, 0),
		r.must(unix.SYS_DUP3, givenErr, 2, 0),
		r.must(unix.SYS_CLOSE_RANGE, 3, maxDescriptor, 0),
		r.must(unix.SYS_CAPSET, pointer(r.arena, header), pointer(r.arena, [2]unix.CapUserData{every, every})),
		r.must(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_SYS_ADMIN, 0, 0),
		r.must(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_NET_ADMIN, 0, 0)}
	r.exec = r.add(unix.SYS_EXECVE, r.text("/proc/self/exe"), r.texts([]string{stageName}), r.texts(stageEnv))
	chain(append(steps, r.exec)...)
	fork := r.must(unix.SYS_CLONE, unix.CLONE_VM|unix.CLONE_VFORK|uintptr(unix.SIGCHLD), 0)
	fork.orElse = steps[0]
	if err := k.run(fork, fork, int(task.Fd()), int(result.Fd()), int(result.Fd())); err != nil {
		return err
	}
	if e := fork.errno(); e != 0 {
		return e
	}
	return r.failure()
}

// beStage makes what the namespaces hold.
func beStage() error {
	task, err := bufio.NewReader(os.Stdin).ReadBytes('\n')
	if err != nil {
		return err
	}
	var in Isolation
	if err := json.Unmarshal(task, &in); err != nil {
		return err
	}
	if err := arrange(in); err != nil {
		return err
	}
	if in.Policy.Network {
		return nil
	}
	if err := raiseLoopback(); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
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
	err = unix.IoctlIfreq(sock, unix.SIOCSIFFLAGS, req)
	if err == unix.ENOTTY { // gVisor knows no such call: there it is up from the start
		return tryLoopback()
	}
	return err
}

// tryLoopback connects to itself.
func tryLoopback() error {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	conn, err := net.DialTimeout("tcp4", listener.Addr().String(), time.Second)
	if err == nil {
		conn.Close()
	}
	return err
}
