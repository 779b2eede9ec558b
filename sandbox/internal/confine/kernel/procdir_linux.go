//go:build amd64 || arm64

package kernel

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A ProcDir is an open /proc of a session: it shows that session's processes, by
// the ids that they have there.
type ProcDir int

// OpenProcDir opens a /proc.
func OpenProcDir(path string) (ProcDir, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("processes: %w", err)
	}
	return ProcDir(fd), nil
}

// Close closes it.
func (d ProcDir) Close() {
	if d >= 0 {
		unix.Close(int(d))
	}
}

// A Member is a process of a session.
type Member struct {
	PID, Parent int
	State       byte
	threads     int    // more than one: it lives, although its first thread may be a zombie
	born        uint64 // tells it from a later one with its id
}

// Identity lasts longer than an id does.
type Identity struct {
	pid  int
	born uint64
}

// Identity is what tells a process from a later one with its id.
func (m Member) Identity() Identity { return Identity{m.PID, m.born} }

// lives tells whether any of it runs or may run again.
func (m Member) lives() bool { return m.threads > 1 || m.State != 'Z' && m.State != 'X' }

// Stopped tells whether a signal has made it stand still, or a tracer.
func (m Member) Stopped() bool { return m.State == 'T' || m.State == 't' }

// List lists the living processes of the session but for the keeper. What ends
// meanwhile is left out; anything else that keeps it from being complete is an error.
func (d ProcDir) List() ([]Member, error) {
	fd, err := unix.Openat(int(d), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	dir := os.NewFile(uintptr(fd), "/proc")
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var all []Member
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == 1 {
			continue
		}
		m, err := d.Member(pid)
		if err == unix.ENOENT || err == unix.ESRCH {
			continue
		}
		if err != nil {
			return nil, err
		}
		if m.lives() {
			all = append(all, m)
		}
	}
	return all, nil
}

// Member parses PID/stat, whose second field may hold anything.
func (d ProcDir) Member(pid int) (Member, error) {
	text, err := d.read(pid, "stat")
	if err != nil {
		return Member{}, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 20 {
		return Member{}, unix.ESRCH
	}
	m := Member{PID: pid, State: fields[0][0]}
	m.Parent, _ = strconv.Atoi(fields[1])
	m.threads, _ = strconv.Atoi(fields[17])
	m.born, _ = strconv.ParseUint(fields[19], 10, 64)
	return m, nil
}

func (d ProcDir) read(pid int, name string) ([]byte, error) {
	fd, err := unix.Openat(int(d), strconv.Itoa(pid)+"/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	text := make([]byte, 4096) // more than these files hold
	n, err := 0, error(nil)
	err = IgnoringEINTR(func() error { n, err = unix.Read(fd, text); return err })
	return text[:max(n, 0)], err
}

// Ours tells whether a process is one that the keeper made for us: only those
// have rights over the namespaces.
func (d ProcDir) Ours(pid int) bool {
	text, _ := d.read(pid, "status")
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, "CapPrm:"); found {
			caps, _ := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			return caps&(1<<unix.CAP_SYS_ADMIN) != 0
		}
	}
	return false
}

// Descendants picks those that descend from a process for which root holds.
func Descendants(all []Member, root func(Member) bool) []Member {
	inside := map[int]bool{}
	for _, m := range all {
		inside[m.PID] = root(m)
	}
	var found []Member
	for grown := true; grown; {
		grown = false
		for _, m := range all {
			if inside[m.Parent] && !inside[m.PID] {
				inside[m.PID], grown = true, true
				found = append(found, m)
			}
		}
	}
	return found
}
