package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
)

// The tests TestInContainer* run the real binary with --container, on engines that
// they start themselves. incontainer_images_linux_test.go says what the containers hold.

// An engine makes containers by a command of its own, as --container-engine names it.
type engine struct {
	name string // docker or podman
	path string // of the command, a script that knows where the engine of the tests is

	mu     sync.Mutex
	images map[string]error // that were made, or why not
}

func (e *engine) command(args ...string) *exec.Cmd { return exec.Command(e.path, args...) }

func (e *engine) run(args ...string) (string, error) { return output(e.command(args...)) }

// engines opens each engine once.
var engines = map[string]func() (*engine, error){
	"docker": sync.OnceValues(openDockerEngine),
	"podman": sync.OnceValues(openPodman),
}

// errNoPodman: what the tests with podman need is not here.
var errNoPodman = errors.New("needs root, podman and a static busybox: apt-get install podman crun busybox-static")

// needEngine returns an engine, or skips the test with the line that installs it.
func needEngine(t *testing.T, name string) *engine {
	t.Helper()
	testlevel.Battery(t, "containers take seconds")
	e, err := engines[name]()
	if errors.Is(err, errNoDocker) || errors.Is(err, errNoPodman) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// onEachEngine runs a test with docker and with podman.
func onEachEngine(t *testing.T, test func(t *testing.T, e *engine)) {
	for _, name := range []string{"docker", "podman"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, needEngine(t, name))
		})
	}
}

func openDockerEngine() (*engine, error) {
	d, err := theDaemon()
	if err != nil {
		return nil, err
	}
	return dockerAt(d.host)
}

// dockerAt is the engine of a daemon.
func dockerAt(host string) (*engine, error) {
	docker, err := exec.LookPath("docker")
	if err != nil {
		return nil, errNoDocker
	}
	line := "exec " + docker + ` "$@"`
	if host != "" {
		line = "DOCKER_HOST='" + host + "' " + line
	}
	return newEngine("docker", line)
}

// newEngine makes the command of an engine from a line of shell.
func newEngine(name, line string) (*engine, error) {
	dir, err := os.MkdirTemp("", "perstack-base-engine-")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	e := &engine{name: name, path: filepath.Join(dir, name), images: map[string]error{}}
	atEnd(func() {
		for image, err := range e.images {
			if err == nil {
				_, _ = e.run("rmi", "-f", image)
			}
		}
		os.RemoveAll(dir)
	})
	return e, os.WriteFile(e.path, []byte("#!/bin/sh\n"+line+"\n"), 0o755)
}

// limited makes podman do with what this process may have: by default it raises the
// number of open files, and crun wants control groups of its own.
const limited = `[containers]
default_ulimits = ["nofile=1024:%[1]d", "nproc=4096:4096"]
cgroups = "disabled"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
`

// openPodman finds a way in which podman runs containers here: as it is, with less
// than it asks for, or where it sees control groups of the second version only.
func openPodman() (*engine, error) {
	podman, err := exec.LookPath("podman")
	if err != nil || os.Geteuid() != 0 {
		return nil, errNoPodman
	}
	if _, err := staticBusybox(); err != nil {
		return nil, errNoPodman
	}
	dir, err := os.MkdirTemp("", "perstack-base-podman-")
	if err != nil {
		return nil, err
	}
	line := fmt.Sprintf(`exec %s --root %[2]s/root --runroot %[2]s/run --tmpdir %[2]s/tmp "$@"`, podman, dir)
	e, err := newEngine("podman", line)
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "containers.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, limited, maxFiles()), 0o644); err != nil {
		return nil, err
	}
	holder, end, err := pureCgroups()
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", errNoPodman, err)
	}
	atEnd(func() {
		_, _ = e.run("rm", "-f", "-a", "-t", "0")
		_ = exec.Command("umount", "-R", filepath.Join(dir, "root", "overlay")).Run()
		end()
		os.RemoveAll(dir)
	})
	less := "export CONTAINERS_CONF=" + config + "\n"
	var complaints []error
	for _, way := range []string{line, less + line, less + fmt.Sprintf("exec nsenter -m -t %d ", holder) + strings.TrimPrefix(line, "exec ")} {
		err := os.WriteFile(e.path, []byte("#!/bin/sh\n"+way+"\n"), 0o755)
		if err == nil {
			err = e.have(busyboxImage)
		}
		if err == nil {
			_, err = e.run("run", "--rm", "--network", "none", busyboxImage, "true")
		}
		if err == nil {
			return e, nil
		}
		complaints = append(complaints, err)
	}
	return nil, fmt.Errorf("%w (podman runs nothing here: %w)", errNoPodman, errors.Join(complaints...))
}

// pureCgroups starts a process in a mount namespace with nothing but control groups
// of the second version; it ends with this process, however that ends.
func pureCgroups() (pid int, end func(), err error) {
	cmd := exec.Command("unshare", "-m", "--propagation", "private", "sh", "-c",
		"umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup && echo ready && exec cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, nil, err
	}
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	end = func() {
		in.Close()
		_ = cmd.Wait()
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		end()
		return 0, nil, errors.New("control groups of the second version cannot be mounted")
	}
	return cmd.Process.Pid, end, nil
}

// flags are those of a server whose commands run in containers of an image.
func (e *engine) flags(image string, more ...string) []string {
	return append([]string{"serve", "--container", image, "--container-engine", e.path}, more...)
}

// start launches the server for a client on stdio.
func (e *engine) start(t *testing.T, dir, image string, more ...string) *client {
	t.Helper()
	e.need(t, image)
	c := start(t, dir, e.flags(image, more...)...)
	t.Cleanup(func() { e.none(t, dir) }) // after the server was killed
	t.Cleanup(c.kill)
	c.initialize()
	return c
}

// site launches the server for clients on HTTP.
func (e *engine) site(t *testing.T, dir, image string, more ...string) *site {
	t.Helper()
	e.need(t, image)
	more = append(more, "--transport", "http", "--listen", "127.0.0.1:0")
	s := startSiteOf(t, binary, dir, e.flags(image, more...)...)
	t.Cleanup(func() { e.none(t, dir) })
	t.Cleanup(s.kill)
	return s
}

// containers are the ids of those that the server made for commands in dir.
func (e *engine) containers(t *testing.T, dir string) (ids []string) {
	t.Helper()
	out, err := e.run("ps", "-aq", "--no-trunc", "--filter", "label=perstack-base.workspace")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range strings.Fields(out) {
		mounts, err := e.run("inspect", "--format", `{{range .Mounts}}{{.Source}}{{"\n"}}{{end}}`, id)
		if err != nil {
			continue // it has just ended
		}
		if slices.Contains(strings.Split(mounts, "\n"), dir) {
			ids = append(ids, id)
		}
	}
	return ids
}

// one is the only container of dir.
func (e *engine) one(t *testing.T, dir string) string {
	t.Helper()
	ids := e.containers(t, dir)
	if len(ids) != 1 {
		t.Fatalf("there are %d containers and not one: %v", len(ids), ids)
	}
	return ids[0]
}

// none waits until there is no container for dir any more.
func (e *engine) none(t *testing.T, dir string) {
	t.Helper()
	for deadline := time.Now().Add(2 * hangGuard); ; time.Sleep(100 * time.Millisecond) {
		ids := e.containers(t, dir)
		if len(ids) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("containers are left: %v", ids)
			_, _ = e.run(append([]string{"rm", "-f"}, ids...)...)
			return
		}
	}
}

// inspect is one field of what the engine knows of a container.
func (e *engine) inspect(t *testing.T, id, format string) string {
	t.Helper()
	out, err := e.run("inspect", "--format", format, id)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}
