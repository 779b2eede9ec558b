package policy

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// shortVar makes the test binary look a policy up with that few descriptors.
const shortVar = "POLICY_TEST_SHORT"

// TestShortOfDescriptors: a place that could not be looked up for want of descriptors is
// not taken for one that does not exist, which would keep commands from their programs.
func TestShortOfDescriptors(t *testing.T) {
	if os.Getenv(shortVar) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), shortVar+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	in := Inputs{Workspace: t.TempDir(), Path: "/usr/bin:/bin"}
	whole := DefaultPolicy(in).Pin()
	defer whole.Close()
	if err := whole.Short(); err != nil {
		t.Fatal(err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	next, err := unix.Dup(0)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(next)
	few := limit
	few.Cur = uint64(next) + 3
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	short := DefaultPolicy(in).Pin()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	defer short.Close()
	usr := func(p Policy) bool {
		return slices.ContainsFunc(p.Places, func(place Place) bool { return place.Real == "/usr" || strings.HasPrefix(place.Real, "/usr/") })
	}
	if !usr(whole) || usr(short) {
		t.Fatalf("/usr is there: %v, with few descriptors %v", usr(whole), usr(short))
	}
	if err := short.Short(); !errors.Is(err, unix.EMFILE) {
		t.Errorf("said of that: %v", err)
	}
}
