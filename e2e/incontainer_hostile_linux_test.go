package e2e

import (
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// hostileImage says what it can of how it wants to be run.
var hostileImage = []string{
	`ENTRYPOINT ["/bin/false"]`, `CMD ["evil"]`, "USER 1000:1000", "WORKDIR /evil",
	"VOLUME /data", "VOLUME /tmp",
	`HEALTHCHECK --interval=1s CMD /bin/sh -c "id > /tmp/health"`,
	"ENV PATH=/bin", "ENV HOME=/evil", "ENV TMPDIR=/evil", "ENV LD_PRELOAD=/evil.so", "ENV GODEBUG=evil=1", "ENV http_proxy=http://user:password@evil:1",
	"ENV PERSTACK_BASE_MAX_OUTPUT=evil", "ENV PERSTACK_BASE_WORKSPACE=/evil", "ENV PERSTACK_BASE_SANDBOX=evil",
	"LABEL perstack-base.workspace=evil",
}

// TestInContainerHostileImage: what an image says of its entry point, user, volumes,
// checks and variables changes nothing of how commands run.
func TestInContainerHostileImage(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e *engine) {
		const image = "perstack-base-e2e:hostile"
		busybox, err := staticBusybox()
		if err != nil {
			t.Skip(err)
		}
		files, err := rootfs(busybox)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, entry{"evil/", 0o777, nil, ""}, entry{"evil/runner", 0o755, []byte("#!/bin/false\n"), ""}, entry{".perstack-base", 0o777, nil, "evil/runner"})
		changes := hostileImage
		err = load(e, image, files, changes...)
		if err != nil { // podman knows no such check in an import
			changes = nil
			for _, change := range hostileImage {
				if !strings.HasPrefix(change, "HEALTHCHECK") {
					changes = append(changes, change)
				}
			}
			err = load(e, image, files, changes...)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = e.run("rmi", "-f", image) })
		volumes := e.volumes(t)
		dir := workspace(t)
		c := e.start(t, dir, image)
		for line, want := range map[string]string{
			"id -u":                  "0",
			"pwd; echo x > made; ls": dir + "\nmade",
			"case $HOME$TMPDIR in *evil*) echo evil; esac": "",
			"echo $http_proxy":                                       "",
			"sleep 3; ls /tmp/health 2>/dev/null; true":              "",
			"(echo x > /data/new) 2>/dev/null && echo written; true": "",
		} {
			if got := c.said(line); got != want {
				t.Errorf("%s prints %q, want %q", line, got, want)
			}
		}
		c.in.Close()
		c.end()
		e.none(t, dir)
		e.sameVolumes(t, volumes)
	})
}

// volumes are the names of all that the engine has.
func (e *engine) volumes(t *testing.T) string {
	t.Helper()
	out, err := e.run("volume", "ls", "-q")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// sameVolumes waits until the engine has the volumes that it had.
func (e *engine) sameVolumes(t *testing.T, before string) {
	t.Helper()
	for deadline := time.Now().Add(hangGuard); ; time.Sleep(100 * time.Millisecond) {
		left := ""
		for name := range strings.FieldsSeq(e.volumes(t)) {
			if !strings.Contains(before, name) {
				left += name + " "
			}
		}
		if left == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("the volumes %s are left", left)
			return
		}
	}
}

// TestInContainerKilledAtAnyTime: whenever a server is killed, while its container is
// being made too, nothing stays: no container, no volume, no process, no directory.
func TestInContainerKilledAtAnyTime(t *testing.T) {
	t.Parallel()
	e := needEngine(t, "docker")
	e.need(t, busyboxImage)
	const image = "perstack-base-e2e:volume"
	busybox, err := staticBusybox()
	if err != nil {
		t.Skip(err)
	}
	files, err := rootfs(busybox)
	if err == nil {
		err = load(e, image, files, "ENV PATH=/bin", "VOLUME /data")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = e.run("rmi", "-f", image) })
	private, err := os.MkdirTemp("", "private-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(private) })
	const tries = 12
	for i := range tries {
		dir := workspace(t)
		cmd := exec.Command(binary, e.flags(image)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "TMPDIR="+private)
		c := startCommand(t, cmd)
		c.initialize()
		c.send("tools/call", callParams("exec", run("(while :; do mkdir -p $TMPDIR/a/b; echo x > $TMPDIR/a/b/$$; done) &\n"+clinging, "timeout=0")))
		time.Sleep(time.Duration(rand.IntN(60*(i+1))) * time.Millisecond)
		c.kill()
		t.Cleanup(func() {
			e.none(t, dir)
			deserted(t, dir)
		})
	}
	for deadline := time.Now().Add(hangGuard); ; time.Sleep(100 * time.Millisecond) {
		left, err := filepath.Glob(filepath.Join(private, "*"))
		if len(left) == 0 && err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("%v are left (%v)", left, err)
			break
		}
	}
	if _, err := os.Stat(private); errors.Is(err, os.ErrNotExist) {
		t.Error("the directory of others was removed")
	}
}

// TestInContainerSockets: what this machine's programs listen on is out of reach where
// commands may only read, the engine's own socket among it, whatever confines them
// inside; who may write there may connect.
func TestInContainerSockets(t *testing.T) {
	for _, mode := range []string{"auto", "off"} {
		t.Run(mode, func(t *testing.T) {
			onEachEngine(t, func(t *testing.T, e *engine) {
				dir := workspace(t)
				read, write := shortDir(t), shortDir(t)
				for _, place := range []string{read, write} {
					listener, err := net.Listen("unix", filepath.Join(place, "s"))
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { listener.Close() })
					go func() {
						for {
							conn, err := listener.Accept()
							if err != nil {
								return
							}
							_, _ = conn.Write([]byte("of the host"))
							conn.Close()
						}
					}()
				}
				c := e.start(t, dir, fullImage, "--sandbox", mode, "--allow-read", read, "--allow-write", write)
				if c.said("which python3 || echo none") == "none" {
					t.Skip("needs python3")
				}
				connect := func(path string) string {
					return "python3 -c 'import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(s.recv(99).decode())' " + path + " 2>&1 | tail -n 1"
				}
				if got := c.said(connect(filepath.Join(write, "s"))); got != "of the host" {
					t.Fatalf("the attack proves nothing: %s", got)
				}
				if got := c.said(connect(filepath.Join(read, "s"))); !strings.Contains(got, "Error") {
					t.Errorf("a command that may only read there connects: %s", got)
				}
			})
		})
	}
}

// shortDir is a directory with a name that is short enough for a socket in it.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "s-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
