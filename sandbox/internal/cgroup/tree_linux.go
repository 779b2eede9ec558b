package cgroup

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// mountInfo and ownGroups are where Linux says which file systems this process sees,
// and in which groups it is.
const (
	mountInfo = "/proc/self/mountinfo"
	ownGroups = "/proc/self/cgroup"
)

// A Tree is this program's part of the tree.
type Tree struct {
	Memory, Processes, CPU bool // what its leaves count

	above   string   // the group that the program was started in
	dir     string   // of the server, below it
	enabled []string // controllers that were not, there
	count   atomic.Int64
}

// controllers are the names of what counts.
var controllers = []string{"memory", "pids", "cpu"}

// has reports whether leaves count by a controller.
func (t *Tree) has(controller string) *bool {
	return map[string]*bool{"memory": &t.Memory, "pids": &t.Processes, "cpu": &t.CPU}[controller]
}

// opened is what Open found, until Leave.
var opened struct {
	sync.Mutex
	tried bool
	tree  *Tree
	err   error
}

// Open finds this program's part of the tree and moves the program into a leaf of it.
// That is done once. The error tells why there is no such part.
func Open() (*Tree, error) {
	o := &opened
	o.Lock()
	defer o.Unlock()
	if !o.tried {
		o.tree, o.err = look()
		o.tried = true
	}
	return o.tree, o.err
}

// Leave moves the program, and what it has started, back to where it was started, and
// removes what it had made: nobody could be started there as long as it is divided.
func Leave() {
	o := &opened
	o.Lock()
	defer o.Unlock()
	if o.tree != nil {
		o.tree.leave()
	}
	o.tree, o.tried = nil, false
}

func look() (*Tree, error) {
	mounts, err := os.ReadFile(mountInfo)
	if err != nil {
		return nil, err
	}
	groups, err := os.ReadFile(ownGroups)
	if err != nil {
		return nil, err
	}
	dir, err := find(string(mounts), string(groups))
	if err != nil {
		return nil, err
	}
	return open(dir)
}

// find is the directory of the group that this process is in.
func find(mounts, groups string) (string, error) {
	own := ""
	for line := range strings.Lines(groups) {
		if path, found := strings.CutPrefix(strings.TrimSpace(line), "0::"); found {
			own = path
		}
	}
	if own == "" {
		return "", errors.New("this system has no control groups of version 2")
	}
	if strings.HasPrefix(own, "/..") {
		return "", errors.New("the control group of this program lies outside of what it can see")
	}
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		at := slices.Index(fields, "-")
		if at < 6 || at+1 >= len(fields) || fields[at+1] != "cgroup2" {
			continue
		}
		root, point := unescape(fields[3]), unescape(fields[4])
		if rel, err := filepath.Rel(root, own); err == nil && filepath.IsLocal(rel) {
			return filepath.Join(point, rel), nil
		}
	}
	return "", errors.New("the control group of this program is mounted nowhere")
}

// unescape reads a path of mountinfo.
func unescape(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}

// open makes the server's part below a group.
func open(dir string) (*Tree, error) {
	if err := delegated(dir); err != nil {
		return nil, err
	}
	offered, err := words(dir + "/cgroup.controllers")
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(controllers, func(c string) bool { return slices.Contains(offered, c) }) {
		return nil, fmt.Errorf("the control group %s counts neither memory nor processes nor processor time", dir)
	}
	removeLeftovers(dir)
	_ = proc.Room() // looks for the group that all of this program is in, while that is this one
	t := &Tree{above: dir, dir: filepath.Join(dir, prefix+rand.Text())}
	if err := t.moveIn(offered); err != nil {
		t.leave()
		return nil, err
	}
	return t, nil
}

// prefix begins the name of what belongs to one server.
const prefix = "perstack-base-"

// server is the leaf of the server itself.
func (t *Tree) server() string { return filepath.Join(t.dir, "server") }

// moveIn makes the server's directories, moves the program there, and has the
// controllers count.
func (t *Tree) moveIn(offered []string) error {
	for _, path := range []string{t.dir, t.server()} {
		if err := os.Mkdir(path, 0o755); err != nil {
			return err
		}
	}
	if err := move(t.server()); err != nil {
		return err
	}
	var failed error
	for _, c := range controllers {
		if !slices.Contains(offered, c) {
			continue
		}
		before, err := enable(t.above, c)
		if err == nil {
			_, err = enable(t.dir, c)
		}
		if err == nil && !before {
			t.enabled = append(t.enabled, c)
		}
		*t.has(c) = err == nil
		if errors.Is(err, unix.EBUSY) {
			err = fmt.Errorf("other processes are in the control group %s, too, so it cannot be divided", t.above)
		}
		failed = errors.Join(failed, err)
	}
	if !t.Memory && !t.Processes && !t.CPU {
		return failed
	}
	return nil
}

// Files of every group.
const (
	procs   = "/cgroup.procs"
	control = "/cgroup.subtree_control"
)

// enable has the groups below dir count by a controller, and tells whether they did.
func enable(dir, controller string) (before bool, err error) {
	if on, err := words(dir + control); err == nil && slices.Contains(on, controller) {
		return true, nil
	}
	return false, os.WriteFile(dir+control, []byte("+"+controller), 0)
}

// leave takes back what moveIn did. Another server beside this one still needs what
// was enabled: then all stays until the next one starts.
func (t *Tree) leave() {
	for _, c := range controllers {
		_ = os.WriteFile(t.dir+control, []byte("-"+c), 0) // it may not be enabled
	}
	for _, c := range t.enabled {
		if os.WriteFile(t.above+control, []byte("-"+c), 0) != nil {
			return
		}
	}
	for begun := time.Now(); time.Since(begun) < removal; time.Sleep(time.Millisecond) {
		pids, _ := words(t.server() + procs)
		for _, pid := range pids {
			_ = os.WriteFile(t.above+procs, []byte(pid), 0) // it may have ended
		}
		if os.Remove(t.server()) == nil {
			break
		}
	}
	_ = os.Remove(t.dir)
}

// move moves this process into a group.
func move(dir string) error { return os.WriteFile(dir+procs, []byte("0"), 0) }

// delegated tells why this program may not divide a group, nil when it may: its user
// owns it, or, as everything is root's, whoever manages the tree has said so.
func delegated(dir string) error {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return err
	}
	user := os.Geteuid()
	_, absent := os.Stat("/run/systemd/system")
	switch {
	case user != 0 && int(st.Uid) != user:
		return fmt.Errorf("the control group %s is not this user's", dir)
	case user == 0 && absent == nil && !marked(dir, "trusted.delegate") && !marked(dir, "user.delegate"):
		return fmt.Errorf("systemd has not delegated the control group %s", dir)
	}
	if err := unix.Access(dir+procs, unix.W_OK); err != nil {
		return fmt.Errorf("the control group %s cannot be written: %w", dir, err)
	}
	return nil
}

// marked reports whether a directory bears an attribute that says yes.
func marked(dir, attribute string) bool {
	value := make([]byte, 8)
	n, err := unix.Getxattr(dir, attribute, value)
	return err == nil && string(value[:n]) == "1"
}

// words reads a file of names.
func words(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	return strings.Fields(string(text)), err
}
