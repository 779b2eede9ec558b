//go:build amd64 || arm64

package confine

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/broker"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"golang.org/x/sys/unix"
)

func init() { probeTable["late-queue"] = escape{try: receiveLate} }

// windings are the steps in which the numbers of queues are wound round.
const windings = 8

// nextQueue is where root says which number a queue gets next.
const nextQueue = "/proc/sys/kernel/msg_next_id"

func await(path string) bool {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if fileExists(path) {
			return true
		}
	}
	return false
}

// receiveLate is a probe: it makes a queue, makes others until its number is about to
// come round, and removes it as soon as a receive of it has been judged.
func receiveLate() error {
	const private, noWait = 0, 0o4000
	queue, _, e := unix.Syscall(unix.SYS_MSGGET, private, 0o600, 0)
	if e != 0 {
		return e
	}
	for i := range windings {
		if err := os.WriteFile(fmt.Sprintf("wind%d", i), []byte(strconv.Itoa(int(queue))), 0o600); err != nil {
			return err
		}
		await(fmt.Sprintf("wound%d", i))
		other, _, e := unix.Syscall(unix.SYS_MSGGET, private, 0o600, 0)
		if e != 0 {
			return e
		}
		if err := syscallErr(unix.SYS_MSGCTL, other, ipcRemove); err != nil {
			return err
		}
	}
	go func() {
		await("judged")
		err := syscallErr(unix.SYS_MSGCTL, queue, ipcRemove)
		_ = os.WriteFile("removed.new", []byte(fmt.Sprint(err)), 0o600)
		_ = os.Rename("removed.new", "removed")
	}()
	message := make([]byte, 72)
	err := syscallErr(unix.SYS_MSGRCV, queue, ptr(&message[0]), 64, 0, noWait)
	fmt.Printf("%v %s\n", err, message[8:])
	return nil
}

// TestLateReceive: a receive from a queue of the session's gets no message of another
// program, when the number of the queue passes to one of that program's after it was
// judged.
func TestLateReceive(t *testing.T) {
	if !withOwnNumbers(t) {
		return
	}
	if !fileExists(nextQueue) {
		t.Skip("nobody may say here which number comes next")
	}
	exe, err := os.Executable()
	must(t, err)
	try := func(t *testing.T, judge func(*broker.Question) broker.Answer) string {
		p := newPlace(t)
		handled := broker.Handlers[unix.SYS_MSGRCV]
		t.Cleanup(func() { broker.Handlers[unix.SYS_MSGRCV] = handled })
		broker.Handlers[unix.SYS_MSGRCV] = func(q *broker.Question) broker.Answer {
			a := judge(q)
			_ = os.WriteFile(filepath.Join(p.ws, "judged"), nil, 0o600)
			if await(filepath.Join(p.ws, "removed")) {
				p.plantQueue(t, q.Arg(0))
			}
			return a
		}
		c := confiner(t, p.policy(), kernel.Missing{})
		go p.wind()
		r := p.do(t, c, []string{probeVar + "=late-queue"}, exe)
		if r.err != nil {
			t.Fatalf("%v %s", r.err, r.out)
		}
		return r.out
	}
	t.Run("judged and let through", func(t *testing.T) {
		if out := try(t, func(*broker.Question) broker.Answer { return broker.Answer{Run: true} }); !strings.Contains(out, canary) {
			t.Errorf("it does not get the message: the test proves nothing: %s", out)
		}
	})
	t.Run("as it is", func(t *testing.T) {
		if out := try(t, broker.Handlers[unix.SYS_MSGRCV]); strings.Contains(out, canary) || !strings.Contains(out, unix.EIDRM.Error()) {
			t.Error(out)
		}
	})
}

// wind spares the probe millions of queues: it has the numbers move on by a part of
// the way at each that the probe makes.
func (p place) wind() {
	for i := range windings {
		name := filepath.Join(p.ws, fmt.Sprintf("wind%d", i))
		await(name)
		queue, err := 0, os.ErrNotExist
		for deadline := time.Now().Add(time.Minute); err != nil && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			text, _ := os.ReadFile(name)
			queue, err = strconv.Atoi(string(text)) // it may be empty yet
		}
		turn := (queue/broker.IPCPlaces + (i+1)*(broker.IPCTurns/windings) - 1) % broker.IPCTurns
		_ = os.WriteFile(nextQueue, []byte(strconv.Itoa(turn*broker.IPCPlaces+(queue+100)%broker.IPCPlaces)), 0)
		_ = os.WriteFile(filepath.Join(p.ws, fmt.Sprintf("wound%d", i)), nil, 0o600)
	}
}

// plantQueue makes a queue of another program with that number, and a message in it.
func (p place) plantQueue(t *testing.T, number int) {
	for range 100 { // others make queues, too
		if err := os.WriteFile(nextQueue, []byte(strconv.Itoa(number)), 0); err != nil {
			t.Error(err)
			return
		}
		id, e := ipcCall(unix.SYS_MSGGET, [6]uint64{ipcPrivate, 0o600})
		if e != 0 {
			t.Error(e)
			return
		}
		t.Cleanup(func() { _ = syscallErr(unix.SYS_MSGCTL, uintptr(id), ipcRemove) })
		message := append([]byte{1, 0, 0, 0, 0, 0, 0, 0}, canary...)
		if err := syscallErr(unix.SYS_MSGSND, uintptr(id), ptr(&message[0]), uintptr(len(canary)), 0); err != nil {
			t.Error(err)
		}
		if id == number {
			return
		}
	}
	t.Errorf("no queue gets the number %d", number)
}

// The names of linux/ipc.h.
const (
	ipcPrivate = 0
	ipcCreate  = 0o1000
	ipcRemove  = 0
)

// ipcCall makes a call of System V objects.
func ipcCall(nr int32, args [6]uint64) (int, unix.Errno) {
	r, _, e := unix.Syscall6(uintptr(nr), uintptr(args[0]), uintptr(args[1]), uintptr(args[2]), uintptr(args[3]), 0, 0)
	return int(r), e
}
