//go:build amd64 || arm64

package confine

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/namespaces"
	"golang.org/x/sys/unix"
)

// passVar makes the test binary a command that gives its directory to another session,
// or takes one and goes on trying what is covered there.
const passVar = "CONFINE_TEST_PASS"

// passTries is how long what is covered is tried after the other session has ended.
const passTries = 20

func bePassing(role string) {
	var err error
	if role == "give" {
		err = giveDirectory()
	} else {
		err = useDirectory()
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

func giveDirectory() error {
	dir, err := os.Open(".")
	if err != nil {
		return err
	}
	conn, err := net.Dial("unix", "sock")
	if err != nil {
		return err
	}
	_, _, err = conn.(*net.UnixConn).WriteMsgUnix([]byte{0}, unix.UnixRights(int(dir.Fd())), nil)
	return err
}

// useDirectory says when it has the directory, and writes what is covered when a file
// says that the session is over.
func useDirectory() error {
	listener, err := net.Listen("unix", "sock")
	if err != nil {
		return err
	}
	fmt.Println("listening")
	conn, err := listener.Accept()
	if err != nil {
		return err
	}
	rights := make([]byte, unix.CmsgSpace(4))
	if _, _, _, _, err = conn.(*net.UnixConn).ReadMsgUnix(make([]byte, 1), rights); err != nil {
		return err
	}
	messages, _ := unix.ParseSocketControlMessage(rights)
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return err
	}
	fmt.Println("taken")
	for over := false; !over; time.Sleep(10 * time.Millisecond) {
		_, err := os.Stat("over")
		over = err == nil
	}
	for range passTries {
		for _, name := range []string{".git/config", "perstack/k"} {
			fd, err := unix.Openat(fds[0], name, unix.O_WRONLY|unix.O_TRUNC, 0)
			if err == nil {
				unix.Close(fd)
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}

// TestCoversOutlastTheirSession: a directory that a command of one session has given to
// one of another does not lose what covers the things in it when the first session ends.
func TestCoversOutlastTheirSession(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	newPlace(t).isolator(t, true)
	for _, locked := range []bool{false, true} {
		withLacks(t, namespaces.Lacks{LockedMounts: !locked})
		for _, landlock := range []bool{true, false} {
			p := repository(t)
			p.mustSh(t, "mkdir perstack && echo key > perstack/k")
			lost := p.passed(t, landlock)
			if locked && len(lost) > 0 {
				t.Errorf("Landlock %v: %q were written", landlock, lost)
			}
			if !locked && len(lost) == 0 {
				t.Error("mounts that may come apart stayed together: this proves nothing")
			}
		}
	}
}

// passed ends a session whose directory another one has, and returns which of the covered
// files that wrote.
func (p place) passed(t *testing.T, landlock bool) (lost []string) {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	first, second := p.isolator(t, landlock), p.isolator(t, landlock)
	out, taker := p.begin(t, second, []string{passVar + "=take"}, exe)
	said := bufio.NewReader(out)
	if line, _ := said.ReadString('\n'); line != "listening\n" {
		t.Fatal(line)
	}
	if out, status := p.in(t, first, []string{passVar + "=give"}, exe); status != 0 {
		t.Fatal(out)
	}
	if line, _ := said.ReadString('\n'); line != "taken\n" {
		t.Fatal(line)
	}
	must(t, first.Close())
	must(t, os.WriteFile(filepath.Join(p.ws, "over"), nil, 0o644))
	if status := taker.Wait(); status != 0 {
		t.Error(status)
	}
	for _, name := range []string{".git/config", "perstack/k"} {
		if text, _ := os.ReadFile(filepath.Join(p.ws, name)); strings.TrimSpace(string(text)) == "" {
			lost = append(lost, name)
		}
	}
	return lost
}
