//go:build amd64 || arm64

package broker

import "testing"

// TestReusedSoon: the numbers just ahead are those that come next, and no number in
// use by a command that has just begun is one.
func TestReusedSoon(t *testing.T) {
	last := lastNumber("/proc/loadavg")
	if last <= 0 {
		t.Skip("there is no /proc/loadavg here")
	}
	most := lastNumber("/proc/sys/kernel/pid_max")
	if !reusedSoon((last + 500) % most) {
		t.Error("the numbers ahead are thought to be safe")
	}
	if reusedSoon((last - 5000 + most) % most) {
		t.Error("a number just given is thought to come next")
	}
}
