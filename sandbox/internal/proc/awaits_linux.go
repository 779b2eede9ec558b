package proc

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// An Input is what processes may be reading.
type Input struct {
	Name     string // as a descriptor of it is shown: "pipe:[7]", "/dev/pts/3"
	Terminal int    // how the kernel numbers it, for a terminal; 0 for none
}

// TerminalInput is the Input that the terminal /dev/pts/N is.
func TerminalInput(n int) Input {
	const major = 136 // of all such terminals
	return Input{Name: fmt.Sprintf("/dev/pts/%d", n), Terminal: major<<8 | n&0xff | n>>8<<20}
}

// Awaits reports whether one of some processes sleeps until there is more of an
// input, and nothing else can wake it, while none of them runs. The processes are
// those shown below dir, which is /proc or looks like it. Where the kernel does not
// tell, it is false.
func Awaits(dir string, all []Process, in Input) bool {
	threads := 0
	for _, p := range all[:min(len(all), mostAsked)] {
		a := asked{dir: dir + "/" + strconv.Itoa(p.PID), in: in}
		tasks := []string{strconv.Itoa(p.PID)}
		if p.Threads > 1 {
			tasks = entries(a.dir + "/task")
		}
		if threads += len(tasks); threads > mostThreads {
			return false
		}
		if call, ok := a.awaits(tasks); ok {
			return a.still(call, dir, all)
		}
	}
	return false
}

// still reports whether a process sleeps in the same call for as long as it takes to see
// twice that no other one works.
func (a asked) still(call, dir string, all []Process) bool {
	if len(all) > mostAsked || !asleep(dir, all) {
		return false
	}
	again, ok := a.awaits(entries(a.dir + "/task"))
	return ok && call == again && asleep(dir, all)
}

// mostAsked and mostThreads bound the work: of more processes, and of more threads
// of all of them, nothing is claimed.
const (
	mostAsked   = 64
	mostThreads = 256
)

// asleep reports whether no thread of the processes runs or waits for a disk.
func asleep(dir string, all []Process) bool {
	threads := 0
	for _, p := range all {
		base := dir + "/" + strconv.Itoa(p.PID) + "/task"
		tasks := entries(base)
		if threads += len(tasks); threads > mostThreads {
			return false
		}
		for _, tid := range tasks {
			stat, err := readFile(base + "/" + tid + "/stat")
			if err != nil {
				continue // it has ended
			}
			_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
			if rest == "" || strings.Contains("RDW", rest[:1]) {
				return false
			}
		}
	}
	return true
}

// entries lists a directory of /proc, no more of it than shows that it is too large.
func entries(dir string) []string {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(mostThreads + 1)
	return names
}

// asked is a process that is looked at.
type asked struct {
	dir string // /proc/PID
	in  Input
}

// awaits finds a thread, of some of the process, that sleeps in a call which only the input ends; call tells
// that one from a later one.
func (a asked) awaits(tasks []string) (call string, found bool) {
	for _, tid := range tasks {
		s, ok := a.sleeps(tid)
		if ok && a.waits(s) && (!s.polls() || a.others(tasks, tid)) {
			return tid + " " + s.text, true
		}
	}
	return "", false
}

// others reports whether all threads but one wait for each other: one that works
// could wake the one that polls.
func (a asked) others(tasks []string, but string) bool {
	for _, tid := range tasks {
		if tid == but {
			continue
		}
		s, ok := a.sleeps(tid)
		if ok && s.polls() && int32(s.args[3]) < 0 {
			_, ok = a.epolls(int(int32(s.args[0])))
		} else if ok {
			ok = s.nr == unix.SYS_FUTEX
		}
		if !ok {
			return false
		}
	}
	return true
}

// A sleep is the call that a thread sleeps in.
type sleep struct {
	text string
	nr   int
	args [6]uint64
}

func (s sleep) polls() bool { return s.nr == unix.SYS_EPOLL_PWAIT || s.nr == epollWait }

func (a asked) sleeps(tid string) (s sleep, ok bool) {
	text, err := readFile(a.dir + "/task/" + tid + "/syscall")
	s.text = string(text)
	fields := strings.Fields(s.text)
	if err != nil || len(fields) < 7 { // it runs
		return s, false
	}
	if s.nr, err = strconv.Atoi(fields[0]); err != nil {
		return s, false
	}
	for i := range s.args {
		s.args[i], _ = strconv.ParseUint(strings.TrimPrefix(fields[i+1], "0x"), 16, 64)
	}
	return s, true
}

// waits reports whether nothing but the input ends a call, which has no time limit.
func (a asked) waits(s sleep) bool {
	switch s.nr {
	case unix.SYS_READ, unix.SYS_READV:
		return a.isInput(int(int32(s.args[0])))
	case unix.SYS_PSELECT6, selectCall:
		return s.args[4] == 0 && a.selects(s)
	case unix.SYS_PPOLL:
		return s.args[2] == 0 && a.pollsInput(s)
	case pollCall:
		return int32(s.args[2]) < 0 && a.pollsInput(s)
	case unix.SYS_EPOLL_PWAIT, epollWait:
		input, alone := a.epolls(int(int32(s.args[0])))
		return int32(s.args[3]) < 0 && input && alone
	}
	return false
}

// selects reports whether the only descriptors that select(2) waits for are the input's.
func (a asked) selects(s sleep) bool {
	n := int(int32(s.args[0]))
	if n <= 0 || n > 1024 {
		return false
	}
	found := false
	for set, at := range s.args[1:4] {
		if at == 0 {
			continue
		}
		words, ok := a.memory(at, (n+63)/64*8)
		if !ok {
			return false
		}
		for fd := range n {
			if binary.NativeEndian.Uint64(words[fd/64*8:])&(1<<(fd%64)) == 0 {
				continue
			}
			if set != 0 || !a.isInput(fd) {
				return false
			}
			found = true
		}
	}
	return found
}

// pollsInput is selects for poll(2).
func (a asked) pollsInput(s sleep) bool {
	n := int(min(s.args[1], mostAsked+1))
	if n == 0 || n > mostAsked {
		return false
	}
	const size = 8
	list, ok := a.memory(s.args[0], n*size)
	if !ok {
		return false
	}
	found := false
	for i := range n {
		fd := int(int32(binary.NativeEndian.Uint32(list[i*size:])))
		events := binary.NativeEndian.Uint16(list[i*size+4:])
		if fd < 0 {
			continue
		}
		if events&unix.POLLIN == 0 || !a.isInput(fd) {
			return false
		}
		found = true
	}
	return found
}

// epolls reports whether an epoll(7) waits for the input, and whether besides that
// for nothing but what the process itself can bring about.
func (a asked) epolls(fd int) (input, alone bool) {
	info, err := os.Open(fmt.Sprintf("%s/fdinfo/%d", a.dir, fd))
	if err != nil {
		return false, false
	}
	defer info.Close()
	text, err := io.ReadAll(io.LimitReader(info, mostInfo))
	if err != nil || len(text) == mostInfo {
		return false, false
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[0] != "tfd:" {
			continue
		}
		target, err := strconv.Atoi(fields[1])
		events, err2 := strconv.ParseUint(fields[3], 16, 32)
		switch {
		case err != nil || err2 != nil:
			return false, false
		case a.isInput(target) && events&unix.EPOLLIN != 0:
			input = true
		case !a.isOwn(target):
			return false, false
		}
	}
	return input, true
}

// mostInfo is far more than what waits for an input has to say of it.
const mostInfo = 16 << 10

// memory reads memory of the process.
func (a asked) memory(at uint64, size int) ([]byte, bool) {
	f, err := os.Open(a.dir + "/mem")
	if err != nil {
		return nil, false
	}
	defer f.Close()
	b := make([]byte, size)
	n, _ := f.ReadAt(b, int64(at))
	return b, n == size
}

func (a asked) link(fd int) string {
	link, _ := os.Readlink(fmt.Sprintf("%s/fd/%d", a.dir, fd))
	return link
}

// isInput reports whether a descriptor of the process is the input.
func (a asked) isInput(fd int) bool {
	link := a.link(fd)
	return link == a.in.Name || link == "/dev/tty" && a.in.Terminal != 0 && a.terminal() == a.in.Terminal
}

// terminal is the one that controls the process, as the kernel numbers it.
func (a asked) terminal() int {
	stat, err := readFile(a.dir + "/stat")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 5 {
		return 0
	}
	n, _ := strconv.Atoi(fields[4])
	return n
}

// isOwn reports whether a descriptor is one by which threads of one process wake
// each other: an event, or a pipe of which the process has both ends.
func (a asked) isOwn(fd int) bool {
	link := a.link(fd)
	if link == "anon_inode:[eventfd]" || link == "anon_inode:[signalfd]" || link == "anon_inode:[io_uring]" {
		return true
	}
	if !strings.HasPrefix(link, "pipe:") || link == a.in.Name {
		return false
	}
	ends := 0
	for _, name := range entries(a.dir + "/fd") {
		if n, err := strconv.Atoi(name); err == nil && a.link(n) == link {
			ends++
		}
	}
	return ends > 1
}
