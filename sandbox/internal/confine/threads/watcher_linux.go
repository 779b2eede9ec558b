//go:build amd64 || arm64

package threads

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// A Watcher is a process of a few instructions that lives in the outer Landlock
// domain of one command. It can signal exactly the processes of that command,
// and they can neither signal nor trace it. It does on request what only it can
// do, and when its line breaks, because the domain is to be killed or because
// the server has died, it kills them all and ends. It has a memory and a name of
// its own, so what ends the server does not end it as well.
type Watcher struct {
	PID   int
	mu    sync.Mutex    // one request at a time
	line  int           // our end of its socket pair, -1 when it is gone
	fired bool          // it killed its domain when the line broke
	ended chan struct{} // closed at its end
	steps [4]kernel.Call
	pin   runtime.Pinner
}

// WatcherName is how system tools show watchers.
const WatcherName = "command-watcher"

// newWatcher starts a watcher from the calling thread, which must already be in
// the outer domain. It is not armed yet.
func newWatcher() (*Watcher, error) {
	image, err := watcherImage()
	if err != nil {
		return nil, fmt.Errorf("the watcher's program: %w", err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socketpair: %w", err)
	}
	defer unix.Close(pair[1])
	w := &Watcher{line: pair[0], ended: make(chan struct{})}
	w.pin.Pin(w)
	w.write(uintptr(pair[1]), uintptr(image))
	w.PID, err = proc.Start(func() (int, error) { return kernel.Spawn(unix.CLONE_VM, &w.steps[0]) })
	if err != nil {
		unix.Close(pair[0])
		w.pin.Unpin()
		return nil, err
	}
	watchers.Store(w.PID, w)
	go w.awaitEnd()
	return w, nil
}

var (
	watcherArgs = [2]*byte{cBytes(WatcherName)}
	noStrings   [1]*byte
	noPath      byte
)

func cBytes(s string) *byte { return &append([]byte(s), 0)[0] }

// write sets down how the child becomes a watcher: leave our session, so that a
// signal to our process group spares it; keep nothing open but its line; execute
// the image.
func (w *Watcher) write(line, image uintptr) {
	w.pin.Pin(watcherArgs[0])
	w.steps = [4]kernel.Call{
		{Nr: unix.SYS_SETSID},
		{Nr: unix.SYS_DUP3, Args: [6]uintptr{line, 0, 0}},
		{Nr: unix.SYS_CLOSE_RANGE, Args: [6]uintptr{1, uintptr(^uint32(0)), unix.CLOSE_RANGE_CLOEXEC}},
		{Nr: unix.SYS_EXECVEAT, Args: [6]uintptr{image, uintptr(unsafe.Pointer(&noPath)), uintptr(unsafe.Pointer(&watcherArgs)),
			uintptr(unsafe.Pointer(&noStrings)), unix.AT_EMPTY_PATH}},
	}
	for i := range w.steps[:3] {
		w.steps[i].Then(&w.steps[i+1])
	}
}

// watcherCode returns where the program of a watcher lies in ours, which executes
// it nowhere.
func watcherCode() *[512]byte

// The image is one page, mapped where it pleases us: the headers, the code, and
// at its end the name.
const (
	imageAt   = 0x400000
	imageSize = 1024
	codeAt    = 64 + 56 // after the headers
	nameAt    = imageSize - 16
)

// watcherImage writes the program as a file in memory, once.
var watcherImage = sync.OnceValues(func() (fd int, err error) {
	image := make([]byte, imageSize)
	le := binary.LittleEndian
	copy(image, "\x7fELF\x02\x01\x01")
	le.PutUint16(image[16:], 2) // ET_EXEC
	le.PutUint16(image[18:], elfMachine)
	le.PutUint32(image[20:], 1)
	le.PutUint64(image[24:], imageAt+codeAt)
	le.PutUint64(image[32:], 64) // the program header follows
	le.PutUint16(image[52:], 64)
	le.PutUint16(image[54:], 56)
	le.PutUint16(image[56:], 1)
	header := image[64:]
	le.PutUint32(header, 1)     // PT_LOAD
	le.PutUint32(header[4:], 5) // to read and execute
	le.PutUint64(header[16:], imageAt)
	le.PutUint64(header[24:], imageAt)
	le.PutUint64(header[32:], imageSize)
	le.PutUint64(header[40:], imageSize)
	le.PutUint64(header[48:], 4096)
	// What lies behind the code comes along; nothing jumps there.
	copy(image[codeAt:nameAt], watcherCode()[:])
	copy(image[nameAt:], WatcherName)
	return memoryFile(image)
})

// memoryFile returns a descriptor by which the content can be executed: one that
// cannot be written by, and of a file that no other can.
func memoryFile(content []byte) (int, error) {
	made, err := unix.MemfdCreate(WatcherName, unix.MFD_CLOEXEC|unix.MFD_EXEC)
	if err == unix.EINVAL { // before 6.3 all can be executed
		made, err = unix.MemfdCreate(WatcherName, unix.MFD_CLOEXEC)
	}
	if err != nil {
		return -1, err
	}
	defer unix.Close(made)
	if _, err := unix.Write(made, content); err != nil {
		return -1, err
	}
	return unix.Open(kernel.FdPath(made), unix.O_RDONLY|unix.O_CLOEXEC, 0)
}

// armRequest makes the end of the line deadly. It is no system call.
const armRequest = ^uintptr(0)

// do has the watcher make one system call and returns its error.
func (w *Watcher) do(nr uintptr, args ...uintptr) (unix.Errno, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.line < 0 {
		return 0, kernel.ErrGone
	}
	request := [7]uintptr{nr}
	copy(request[1:], args)
	b := (*[unsafe.Sizeof(request)]byte)(unsafe.Pointer(&request))
	err := kernel.IgnoringEINTR(func() error { _, err := unix.Write(w.line, b[:]); return err })
	var ret int
	answer := (*[unsafe.Sizeof(ret)]byte)(unsafe.Pointer(&ret))
	n := 0
	if err == nil && w.urge(w.answered) {
		err = kernel.IgnoringEINTR(func() error { n, err = unix.Read(w.line, answer[:]); return err })
	}
	if err != nil || n != len(answer) {
		w.giveUp()
		return 0, kernel.ErrGone
	}
	return kernel.ErrnoOf(ret), nil
}

// begin gives the watcher its name, proves that prove holds and makes it deadly.
func (w *Watcher) begin(prove func(*Watcher) error) error {
	if _, err := w.do(unix.SYS_PRCTL, unix.PR_SET_NAME, imageAt+nameAt); err != nil {
		return fmt.Errorf("the watcher does not run: %w", errors.Join(err, w.failure()))
	}
	proc.Keep(w.PID)
	if err := prove(w); err != nil {
		return err
	}
	_, err := w.do(armRequest)
	return err
}

// failure tells why it was not executed, nil when it was.
func (w *Watcher) failure() error {
	if e := w.steps[3].Errno(); e != 0 {
		return e
	}
	return nil
}

// Signal sends sig to one process or one group of the domain. The kernel would
// let the watcher reach itself as well, and the thread that starts the command.
func (w *Watcher) Signal(pid int, sig unix.Signal) (unix.Errno, error) {
	if machinery(pid) {
		return unix.EPERM, nil
	}
	return w.kill(pid, sig)
}

// kill is kill(2). With -1 it reaches the whole domain but never the watcher.
func (w *Watcher) kill(pid int, sig unix.Signal) (unix.Errno, error) {
	return w.do(unix.SYS_KILL, uintptr(pid), uintptr(sig))
}

// Has reports whether task (a process or thread) belongs to the domain.
func (w *Watcher) Has(task int) bool {
	e, err := w.Signal(task, 0)
	return err == nil && e == 0
}

// prove fails unless the kernel keeps the watcher from reaching us, who are
// outside its domain.
func (w *Watcher) prove() error {
	e, err := w.kill(os.Getpid(), 0)
	if err != nil {
		return err
	}
	if e != unix.EPERM {
		return fmt.Errorf("the signal scope does not hold: a signal to the outside gave %q instead of EPERM", e)
	}
	return nil
}

// fire breaks the line and reports whether the watcher killed its domain for it.
func (w *Watcher) fire() bool {
	w.close()
	return w.fired
}

// close breaks the line, which kills whatever lives in the domain, and waits
// until that has been done.
func (w *Watcher) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.line < 0 {
		return
	}
	unix.Close(w.line)
	w.line = -1
	if !w.urge(w.hasEnded) {
		w.giveUp()
	}
	<-w.ended
	watchers.Delete(w.PID) // once it is collected, another watcher may get its id
	status, err := proc.Wait(w.PID)
	w.fired = err == nil && status.Exited() && status.ExitStatus() == 1
	w.pin.Unpin()
}
