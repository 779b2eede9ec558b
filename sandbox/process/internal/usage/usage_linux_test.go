package usage

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNumbers reads what the kernel says of this very process.
func TestNumbers(t *testing.T) {
	status := numbers("/proc/self/status")
	if status["Threads"] < 1 || status["RssAnon"] < 1 || status["Pid"] != int64(os.Getpid()) {
		t.Errorf("%v", status)
	}
	if len(numbers("/proc/self/no")) != 0 {
		t.Error("there is no such file")
	}
	u := Usage{}
	u.Add("/proc", []int{os.Getpid()})
	if n := u.Precisely(); n <= 0 || n > 2*u.AtMost()+1<<20 {
		t.Errorf("precisely %d, at most %d", n, u.AtMost())
	}
}

// TestMapped: of a file in memory that is mapped only what the process has of it counts.
func TestMapped(t *testing.T) {
	const size = 8 << 20
	file, err := os.CreateTemp("/dev/shm", "perstack-test-")
	if err != nil {
		t.Skip(err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if err := file.Truncate(size); err != nil {
		t.Fatal(err)
	}
	mem, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(mem) }()
	for i := 0; i < size/2; i += os.Getpagesize() {
		mem[i] = 1
	}
	var u Usage
	u.AddFiles(int(file.Fd()))
	if got := mapped("/proc/self/smaps", u.devices); got != size/2 {
		t.Errorf("%d bytes are mapped on %v", got, u.devices)
	}
	if got := mapped("/proc/self/smaps", nil); got != 0 {
		t.Errorf("%d bytes are mapped on nothing", got)
	}
}
