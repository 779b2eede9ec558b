//go:build amd64 || arm64

package threads

import (
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// Kill kills every process of the domain and returns when the signals are out;
// Done closes when the last one is gone.
func (d *Domain) Kill() error {
	if d.Watcher != nil && d.Watcher.fire() {
		return nil
	}
	return d.killDescendants()
}

// Signal sends sig to every process of the domain.
func (d *Domain) Signal(sig unix.Signal) error {
	if d.Watcher != nil {
		e, err := d.Watcher.kill(-1, sig)
		if err == nil && e != 0 {
			err = e
		}
		return err
	}
	for _, pid := range d.descendants() {
		_ = proc.Signal(pid, sig) // gone is as good
	}
	return nil
}

// killDescendants is for kernels that do not scope signals, and for a domain that
// has lost its watcher: it kills what descends from the command, until several looks in a row find nobody and, where
// the kernel tells, it says so too. One look is not enough for a process that
// hops from id to id.
func (d *Domain) killDescendants() error {
	const looks, most = 10, 30 * time.Second
	var left []int
	for empty, begun := 0, time.Now(); time.Since(begun) < most; {
		left = d.descendants()
		if empty++; len(left) > 0 {
			empty = 0
		}
		if empty >= looks && (d.broker == nil || !d.Alive() || d.uncollected()) {
			return nil
		}
		for _, pid := range left {
			_ = proc.Signal(pid, unix.SIGKILL) // gone is as good
		}
		time.Sleep(time.Millisecond)
	}
	return fmt.Errorf("processes of the command survived: %v", left)
}

// uncollected reports whether the command has ended and nobody has taken its
// status. Before 6.11 a process keeps its filter until then, and the kernel cannot
// say that the domain is empty.
func (d *Domain) uncollected() bool {
	leader, there := proc.Read(d.leader)
	return there && leader.Dead && leader.Parent == os.Getpid()
}

// descendants lists the living processes below the command. Those whose parents
// ended are ours to adopt: they are this domain's when they kept its process
// group or session, or when there is no other domain whose they could be. Where
// signals are scoped the other domains' watchers know that.
func (d *Domain) descendants() []int {
	led := d.started.Load() && proc.Known(d.leader) // who was collected before has nobody below it
	all := proc.All()
	proc.Settle()
	alone := func(int) bool { return len(d.confiner.Live()) <= 1 }
	if d.Watcher != nil {
		alone = func(pid int) bool { return !claimed(pid) }
	}
	me, leader := os.Getpid(), d.leaderAmong(all)
	family := proc.Family(all, func(p proc.Process) bool {
		adopted := p.Parent == me && !proc.Known(p.PID) && proc.Confined(p.PID)
		return led && p.PID == leader || adopted && (p.Group == leader || p.Session == leader || alone(p.PID))
	})
	var out []int
	for _, p := range family {
		if !p.Dead {
			out = append(out, p.PID)
		}
	}
	return out
}

// leaderAmong is the id of the command's own process, which its group has as well,
// and -1 when the system has given it to another.
func (d *Domain) leaderAmong(all []proc.Process) int {
	if !d.started.Load() {
		return -1
	}
	if slices.ContainsFunc(all, func(p proc.Process) bool { return p.PID == d.leader && p.Born != d.born }) {
		return -1
	}
	return d.leader
}

// poll waits for the end of a domain that has no listener to tell of it.
func (d *Domain) poll() {
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		time.Sleep(pause)
		if len(d.members()) == 0 {
			d.finish()
			return
		}
	}
}

// Populated looks at the processes, where Alive waits to be told that none is left.
func (d *Domain) Populated() bool { return d.Alive() && len(d.members()) > 0 }

// Processes are where the processes of the domain are shown, and its own.
func (d *Domain) Processes() (dir string, all []proc.Process) {
	members := d.members()
	return "/proc", slices.DeleteFunc(proc.All(), func(p proc.Process) bool { return !slices.Contains(members, p.PID) })
}

// members lists the living processes of the domain, as the kernel sees it where
// it can tell.
func (d *Domain) members() []int {
	if d.Watcher == nil {
		return d.descendants()
	}
	var out []int
	for _, p := range proc.All() {
		if !p.Dead && d.Watcher.Has(p.PID) {
			out = append(out, p.PID)
		}
	}
	if d.Watcher.gone() {
		return d.descendants()
	}
	return out
}
