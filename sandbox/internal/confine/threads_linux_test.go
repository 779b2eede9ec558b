//go:build amd64 || arm64

package confine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/broker"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/threads"
	"golang.org/x/sys/unix"
)

// pileVar makes the test binary be a server whose commands ask it many questions
// at once that block, for a user with few processes, all of which are taken.
const pileVar = "CONFINE_TEST_PILE"

const (
	pileLimit    = 400
	askers       = 32 // threads of a command that asks
	asking       = 2  // such commands
	spareThreads = 8  // of the command that makes the questions block
	writes       = 20 // of the command that makes the questions block
)

// askForModes changes the mode of one file from many threads without end.
func askForModes() error {
	return withFD("target", unix.O_RDWR, func(fd int) error {
		for range askers {
			go func() {
				runtime.LockOSThread()
				for {
					if _, err := os.Stat("full"); err == nil {
						_ = unix.Fchmod(fd, 0o600)
					} else {
						time.Sleep(10 * time.Millisecond)
					}
				}
			}()
		}
		_ = os.WriteFile(fmt.Sprintf("up%d", os.Getpid()), nil, 0o600)
		time.Sleep(5 * time.Minute)
		return nil
	})
}

// keepWriting keeps that file locked, by long writes.
func keepWriting() error {
	return withFD("target", unix.O_RDWR, func(fd int) error {
		keepThreads(spareThreads)
		_ = os.WriteFile(fmt.Sprintf("up%d", os.Getpid()), nil, 0o600)
		for _, err := os.Stat("full"); err != nil; _, err = os.Stat("full") {
			time.Sleep(10 * time.Millisecond)
		}
		block := make([]byte, 1<<20)
		many := make([][]byte, 128)
		for i := range many {
			many[i] = block
		}
		for range writes {
			if _, err := unix.Pwritev(fd, many, 0); err != nil {
				return err
			}
		}
		return nil
	})
}

// keepThreads makes threads that the Go runtime keeps for later, when it can make no more.
func keepThreads(n int) {
	var all, made sync.WaitGroup
	made.Add(n)
	for range n {
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			made.Done()
			made.Wait()
		})
	}
	all.Wait()
}

// takeAll makes processes until its user can have no more, and leaves them.
func takeAll() error {
	for range pileLimit {
		if err := exec.Command("sleep", "300").Start(); err != nil {
			return err
		}
	}
	return nil
}

// bePiled runs the attack: askers, a writer, and what takes all other processes.
func bePiled(dir string) {
	p := place{ws: dir}
	check := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	check(unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: pileLimit, Max: pileLimit}))
	c, err := threads.New(p.policy(), threads.Options{})
	check(err)
	exe, err := os.Executable()
	check(err)
	command := func(probe string, argv ...string) *exec.Cmd {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), probeVar+"="+probe), os.Stderr
		_, err := c.Start(starting(cmd))
		check(err)
		return cmd
	}
	check(os.WriteFile(filepath.Join(dir, "target"), nil, 0o600))
	for range asking {
		command("ask", exe)
	}
	writer := command("write-long", exe)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if up, _ := filepath.Glob(filepath.Join(dir, "up*")); len(up) == asking+1 { // and the writer
			break
		}
		if time.Now().After(deadline) {
			check(errors.New("a command is not up"))
		}
	}
	_ = wait(command("fill", exe))
	check(os.WriteFile(filepath.Join(dir, "full"), nil, 0o600))
	check(wait(writer))
	fmt.Println("alive:", c.Close())
	os.Exit(0)
}

// TestBlockedQuestionsTakeNoThreads: what commands make block in the server, when
// there are no more threads to be had, does not end it.
func TestBlockedQuestionsTakeNoThreads(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("it takes a user who has no other processes")
	}
	const user = 54323
	top, err := os.MkdirTemp("", "pile-*")
	must(t, err)
	defer os.RemoveAll(top)
	must(t, os.Chmod(top, 0o755))
	dir := filepath.Join(top, "ws")
	must(t, os.Mkdir(dir, 0o755))
	if err := unix.Mount("pile", dir, "tmpfs", 0, fmt.Sprintf("size=160m,uid=%d,mode=755", user)); err != nil {
		t.Skip(err)
	}
	defer func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }()
	server := exec.Command(copyOfTest(t, top))
	server.Env = []string{"HOME=" + dir, "TMPDIR=" + dir, "PATH=/usr/bin:/bin", pileVar + "=" + dir}
	server.Dir = dir
	server.SysProcAttr = &unix.SysProcAttr{Credential: credential(user)}
	out, err := server.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "alive: <nil>") {
		t.Errorf("the server did not survive: %v %.2000s", err, out)
	}
	eventually(t, "commands go on", func() bool { return len(place{ws: dir}.living()) == 0 })
}

// TestSeatsOfOthers: questions of some sessions that block for ever leave every
// other session one that is answered.
func TestSeatsOfOthers(t *testing.T) {
	for range 2 * cap(broker.CommonSeats) / broker.SessionSeats {
		s := broker.NewSeats()
		var all sync.WaitGroup
		stuck := make(chan func(), 2*broker.SessionSeats)
		for range 2 * broker.SessionSeats {
			all.Go(func() { stuck <- s.Take() })
		}
		defer func() {
			for range 2 * broker.SessionSeats {
				(<-stuck)()
			}
			all.Wait()
		}()
		eventually(t, "a session gets too few", func() bool {
			return len(broker.CommonSeats) == cap(broker.CommonSeats) || len(s.Mine) == broker.SessionSeats
		})
	}
	eventually(t, "there are common seats left: nothing is proven", func() bool { return len(broker.CommonSeats) == cap(broker.CommonSeats) })
	p := newPlace(t)
	if r := p.sh(t, confiner(t, p.policy(), kernel.Missing{}), "touch f && chmod 600 f && stat -c %a f"); r.err != nil || r.out != "600\n" {
		t.Errorf("another session: %v %s", r.err, r.out)
	}
}

// connectPatiently connects more often than may wait at once to a server that is
// slow to accept.
func connectPatiently() error {
	at := &unix.SockaddrUnix{Name: "slow.sock"}
	l, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if err := unix.Bind(l, at); err != nil {
		return err
	}
	if err := unix.Listen(l, 0); err != nil {
		return err
	}
	const many = broker.WaitingConnects + 20
	results := make(chan error, many)
	for range many {
		go func() {
			s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			if err == nil {
				err = unix.Connect(s, &unix.SockaddrUnix{Name: at.Name}) // which package unix changes
			}
			results <- err
		}()
	}
	time.Sleep(time.Second) // for as long they wait
	go func() {
		for {
			_, _, _ = unix.Accept(l)
		}
	}()
	for range many {
		if err := <-results; err != nil {
			return err
		}
	}
	return nil
}

// TestWaitingConnectsOfOthers: however many connects of a session wait, those of
// another wait for as long as they have to, and none of them fails.
func TestWaitingConnectsOfOthers(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	p, other := newPlace(t), newPlace(t)
	c := confiner(t, p.policy(), kernel.Missing{})
	var commands []*exec.Cmd
	for i := range 9 {
		cmd := exec.Command(exe)
		cmd.Dir = filepath.Join(p.ws, fmt.Sprint(i))
		must(t, os.Mkdir(cmd.Dir, 0o755))
		cmd.Env = append(os.Environ(), probeVar+"=connects")
		_, err := c.Start(starting(cmd))
		must(t, err)
		commands = append(commands, cmd)
	}
	for _, cmd := range commands {
		eventually(t, "a command does not connect", place{ws: cmd.Dir}.isUp)
	}
	eventually(t, "too few connects wait: nothing is proven", func() bool { return len(c.Waits) == cap(c.Waits) })
	if r := other.do(t, confiner(t, other.policy(), kernel.Missing{}), []string{probeVar + "=patient"}, exe); r.err != nil {
		t.Errorf("another session: %v %s", r.err, r.out)
	}
	must(t, c.Close())
	for _, cmd := range commands {
		_ = wait(cmd)
	}
}
