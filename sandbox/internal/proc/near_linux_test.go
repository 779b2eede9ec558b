package proc

import (
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNear: all that descends from a command is found without the table, with what its
// parents have left, and nothing of another command.
func TestNear(t *testing.T) {
	Adopt()
	command := func(script string) int {
		pid, err := Start(func() (int, error) { return fork(script) })
		must(t, err)
		t.Cleanup(func() {
			_ = Signal(-pid, unix.SIGKILL)
			_, _ = Wait(pid)
		})
		return pid
	}
	pid := command("sleep 600 & (sleep 601 & exit) & (sh -c 'sleep 602; true'; true) & wait")
	other := command("sleep 603")
	family := func(all []Process) (pids []int) {
		for _, p := range Family(all, func(p Process) bool { return p.Group == pid }) {
			if !p.Dead {
				pids = append(pids, p.PID)
			}
		}
		slices.Sort(pids)
		return pids
	}
	left := func(all []Process) bool {
		return slices.ContainsFunc(all, func(p Process) bool { return p.Group == pid && p.Parent == os.Getpid() && p.PID != pid })
	}
	eventually(t, "they do not start", func() bool { return len(family(All())) == 6 && left(All()) })
	near := Near(pid)
	if got, want := family(near), family(All()); !slices.Equal(got, want) {
		t.Errorf("near are %v, of the table %v", got, want)
	}
	if slices.ContainsFunc(near, func(p Process) bool { return p.PID == other }) {
		t.Errorf("near is also %d", other)
	}
	below := Below("/proc/self/root/proc", pid)
	if len(below) != 4 || slices.ContainsFunc(below, func(p Process) bool { return p.PID == pid || p.Group != pid }) {
		t.Errorf("below %d are %v", pid, below)
	}
}
