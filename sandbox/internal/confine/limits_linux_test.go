//go:build amd64 || arm64

package confine

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/namespaces"
	"golang.org/x/sys/unix"
)

// crowdVar makes beServer one of a user with few processes, whose command takes
// them all.
const crowdVar = "CONFINE_TEST_CROWD"

// bombLimit is how many processes and threads that user may have.
const bombLimit = 300

// TestForkBombInCell: a command that takes all processes of its user takes none that
// the server needs, and is killed.
func TestForkBombInCell(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the test needs a user without other processes")
	}
	p := newPlace(t)
	p.isolator(t, true)
	const nobody = 61234
	for dir := p.ws; dir != os.TempDir(); dir = filepath.Dir(dir) {
		must(t, os.Chmod(dir, 0o755))
	}
	must(t, os.Chown(p.ws, nobody, nobody))
	exe := filepath.Join(filepath.Dir(p.ws), "server")
	self, err := os.Open("/proc/self/exe")
	must(t, err)
	defer self.Close()
	copied, err := os.OpenFile(exe, os.O_CREATE|os.O_WRONLY, 0o755)
	must(t, err)
	_, err = io.Copy(copied, self)
	must(t, err)
	must(t, copied.Close())
	server := exec.Command(exe)
	server.Dir = p.ws
	server.Env = append(os.Environ(), serverVar+"="+p.ws, crowdVar+"=1")
	server.SysProcAttr = &unix.SysProcAttr{Credential: credential(nobody)}
	out, err := server.CombinedOutput()
	if strings.Contains(string(out), "no namespaces") {
		t.Skipf("%s", out)
	}
	if err != nil || !strings.HasSuffix(string(out), "alive\n") {
		if len(out) > 600 {
			out = out[:600]
		}
		t.Errorf("%v\n%s", err, out)
	}
	eventually(t, "processes survived", func() bool { return len(p.living()) == 0 })
}

// beBombedServer starts a bomb, has the runtime make threads, and ends the bomb.
func beBombedServer(p place) {
	check := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	check(unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: bombLimit, Max: bombLimit})) // first of all
	i, err := namespaces.New(namespaces.Isolation{Policy: p.policy(), Workspace: p.ws})
	check(err)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	check(err)
	files := [3]uintptr{null.Fd(), null.Fd(), null.Fd()}
	c, err := i.Start(namespaces.Program{Path: "/bin/sh", Argv: []string{"sh", "-c", "b() { b & b & sleep 1005; }; b"}, Dir: p.ws, Files: files})
	check(err)
	for range 1000 { // until nothing can be started any more
		d, err := i.Start(namespaces.Program{Path: "/bin/true", Argv: []string{"true"}, Dir: p.ws, Files: files})
		if err != nil && strings.Contains(err.Error(), unix.EAGAIN.Error()) {
			break
		}
		if err == nil {
			d.Wait()
		}
	}
	for range namespaces.ProcessReserve / 2 {
		locked := make(chan bool)
		go func() { runtime.LockOSThread(); close(locked); select {} }()
		<-locked
	}
	check(c.Kill())
	<-c.Done()
	d, err := i.Start(namespaces.Program{Path: "/bin/true", Argv: []string{"true"}, Dir: p.ws, Files: files})
	check(err)
	fmt.Println(d.Wait().ExitStatus())
	check(i.Close())
	fmt.Println("alive")
	os.Exit(0)
}

// TestMemoryIsShared: the session's file systems in memory hold a part of it, and
// what does not fit is refused to the command.
func TestMemoryIsShared(t *testing.T) {
	p := newPlace(t)
	if size := namespaces.MemorySize(0); size == "size=0" || !strings.HasPrefix(size, "size=") {
		t.Fatal(size)
	}
	var info unix.Sysinfo_t
	must(t, unix.Sysinfo(&info))
	all := int64(info.Totalram) * int64(info.Unit) >> 10
	out, status := p.inSh(t, p.isolator(t, true), fmt.Sprintf(`for d in /tmp /dev/shm; do
  test $(df -Pk $d | awk 'NR==2 {print $2}') -le %d || echo $d is too large
  fallocate -l %dK $d/f 2>&1 | grep -o 'No space left'
done`, all/namespaces.MemoryShare+64, all/namespaces.MemoryShare+1024))
	if out != "No space left\nNo space left\n" {
		t.Errorf("%v %s", status, out)
	}
}
