package proc

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// All reads the table.
func All() []Process { return table("/proc") }

func table(dir string) []Process {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	all := make([]Process, 0, len(names))
	for _, pid := range numbers(names) {
		if p, ok := read(dir, pid); ok {
			all = append(all, p)
		}
	}
	return all
}

// readFile is os.ReadFile for files of /proc, of which many are read: package os would
// ask for each whether it can be waited for.
func readFile(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	text := make([]byte, 0, 1024)
	for {
		n, err := unix.Read(fd, text[len(text):cap(text)])
		if n <= 0 {
			return text, err
		}
		if text = text[:len(text)+n]; len(text) == cap(text) {
			text = slices.Grow(text, len(text))
		}
	}
}

// exiting is the flag of a thread whose end has begun in the kernel (PF_EXITING). The line
// of a process has the state of its first thread, which the others may outlive.
const exiting = 0x4

// Read reads one line of it; false when there is no such process.
func Read(pid int) (Process, bool) { return read("/proc", pid) }

func read(dir string, pid int) (Process, bool) {
	stat, err := readFile(dir + "/" + strconv.Itoa(pid) + "/stat")
	at := bytes.LastIndexByte(stat, ')') // the name before it may hold anything
	if err != nil || at < 0 {
		return Process{}, false
	}
	fields := bytes.Fields(stat[at+1:])
	if len(fields) < 20 {
		return Process{}, false
	}
	number := func(i int) uint64 { n, _ := strconv.ParseUint(string(fields[i]), 10, 64); return n }
	state, threads := fields[0][0], int(number(17))
	return Process{PID: pid, Parent: int(number(1)), Group: int(number(2)), Session: int(number(3)), Threads: threads, Born: number(19),
		Stopped: state == 'T' || state == 't',
		Dead:    threads <= 1 && (state == 'Z' || state == 'X' || number(6)&exiting != 0)}, true
}

// Family is every process for which root holds, and all descendants of those.
func Family(all []Process, root func(Process) bool) []Process {
	in := make(map[int]bool)
	var members []Process
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if !in[p.PID] && (in[p.Parent] || root(p)) {
				in[p.PID], grown = true, true
				members = append(members, p)
			}
		}
	}
	return members
}

// FileField returns a field of a file of /proc that consists of such, "" when
// there is none.
func FileField(path, name string) string {
	text, _ := os.ReadFile(path)
	return field(string(text), name)
}

// StatusField returns a field of /proc/PID/status, "" when there is none.
func StatusField(pid int, name string) string {
	return FileField("/proc/"+strconv.Itoa(pid)+"/status", name)
}

// field returns what follows a name and a colon in a text of such lines.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && key == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Name returns the name of a task's program.
func Name(tid int) string {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(tid) + "/comm")
	return strings.TrimSpace(string(text))
}

// living is a thread of a process that tells what only one that has not ended can: another
// than the first, where that has.
func living(pid int) (tid int) {
	ended := func(tid int) bool { return strings.HasPrefix(StatusField(tid, "State"), "Z") }
	if !ended(pid) {
		return pid
	}
	for _, tid := range numbers(entries("/proc/" + strconv.Itoa(pid) + "/task")) {
		if tid != pid && !ended(tid) {
			return tid
		}
	}
	return pid
}

// Environ returns the environment that a process was started with.
func Environ(pid int) []string {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(living(pid)) + "/environ")
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// Ticks is the time since boot as the kernel dates processes, 100 to the second.
func Ticks() uint64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) // every kernel that Go runs on has this clock
	return uint64(now.Nano() / int64(10*time.Millisecond))
}
