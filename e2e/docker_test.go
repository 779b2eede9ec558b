//go:build linux

package e2e

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
)

// A docker is a daemon with the images of the Dockerfile, for one run of the tests.
type docker struct {
	host string // where the daemon listens; "" is the client's own choice
}

// The images, and what they are made from.
const (
	execImage    = "perstack-base-e2e:exec"
	scratchImage = "perstack-base-e2e:scratch"
	baseImage    = "perstack-base-e2e:base"
	builderImage = "perstack-base-e2e:builder"
	imageLabel   = "perstack-base-e2e=1"
)

// theDocker is opened by the first test that needs it.
var theDocker = sync.OnceValues(openDocker)

// errNoDocker: what the tests of the images need is not here.
var errNoDocker = errors.New("needs a Docker daemon, or root and dockerd, and a static busybox: apt-get install docker.io busybox-static")

// needDocker returns the daemon, or skips the test with the line that installs one.
func needDocker(t *testing.T) *docker {
	t.Helper()
	testlevel.Battery(t, "the images take seconds")
	d, err := theDocker()
	if errors.Is(err, errNoDocker) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func openDocker() (*docker, error) {
	busybox, err := staticBusybox()
	if err != nil {
		return nil, err
	}
	d, err := theDaemon()
	if err != nil {
		return nil, err
	}
	atEnd(func() {
		_, _ = d.run("rmi", "-f", execImage, scratchImage, baseImage, builderImage)
		_, _ = d.run("image", "prune", "-f", "--filter", "label="+imageLabel) // of the stage that builds
	})
	return d, d.build(busybox)
}

// theDaemon is the daemon of this machine, or one that ends with the tests.
var theDaemon = sync.OnceValues(func() (*docker, error) {
	if d := (&docker{}); d.reachable() == nil {
		return d, nil
	}
	dir, err := os.MkdirTemp("", "perstack-base-docker-")
	if err != nil {
		return nil, err
	}
	daemon, err := startDaemon(dir)
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	atEnd(func() {
		daemon.end()
		os.RemoveAll(dir)
	})
	return &docker{host: daemon.host}, nil
})

// command is a call of the docker client.
func (d *docker) command(args ...string) *exec.Cmd {
	cmd := exec.Command("docker", args...)
	if d.host != "" {
		cmd.Env = append(os.Environ(), "DOCKER_HOST="+d.host)
	}
	return cmd
}

// run calls the client and returns what it prints; the error tells the complaint.
func (d *docker) run(args ...string) (string, error) { return output(d.command(args...)) }

func output(cmd *exec.Cmd) (string, error) {
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, complaint.String())
	}
	return out.String(), nil
}

func (d *docker) reachable() error {
	_, err := d.run("version")
	return err
}

// daemonScript runs a daemon until it ends or nobody holds standard input open.
const daemonScript = `exec 3<&0
(cat <&3; kill $$) > /dev/null 2>&1 &
dockerd "$@" 3<&- & daemon=$!
trap 'kill $daemon' TERM
wait $daemon; wait $daemon`

// A daemon is a dockerd of the tests.
type daemon struct {
	host string // where it listens
	dir  string // where all that it has is
	cmd  *exec.Cmd
	line io.Closer // as long as this is open, it runs
}

// startDaemon starts a daemon that keeps what it has in a directory of its own
// and touches no network. It ends with this process, however that ends.
func startDaemon(dir string) (*daemon, error) {
	if _, err := exec.LookPath("dockerd"); err != nil || os.Geteuid() != 0 {
		return nil, errNoDocker
	}
	var log bytes.Buffer
	d := &daemon{host: "unix://" + filepath.Join(dir, "sock"), dir: dir}
	d.cmd = exec.Command("sh", "-c", daemonScript, "dockerd", "--host", d.host,
		"--data-root", filepath.Join(dir, "data"), "--exec-root", filepath.Join(dir, "exec"), "--pidfile", filepath.Join(dir, "pid"),
		"--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false")
	d.cmd.Stdout, d.cmd.Stderr = &log, &log
	line, err := d.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	d.line = line
	d.cmd.WaitDelay = 5 * time.Second // a containerd whose daemon was killed holds its output
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(hangGuard); (&docker{d.host}).reachable() != nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) || !alive(d.cmd.Process.Pid) {
			d.end()
			return nil, fmt.Errorf("%w (dockerd does not start here: %s)", errNoDocker, log.String())
		}
	}
	return d, nil
}

// end stops the daemon and, with it, its containers.
func (d *daemon) end() {
	d.line.Close()
	_ = d.cmd.Wait()
}

// staticBusybox finds a busybox that runs without libraries.
func staticBusybox() (path string, err error) {
	if path, err = exec.LookPath("busybox"); err != nil {
		return "", errNoDocker
	}
	file, err := elf.Open(path)
	if err != nil {
		return "", errNoDocker
	}
	defer file.Close()
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			return "", errNoDocker
		}
	}
	return path, nil
}

// build makes the images by the Dockerfile. Nothing is pulled: the base is a
// busybox of this machine, and the builder puts in place the binary under test
// where the Dockerfile has Go build one.
func (d *docker) build(busybox string) error {
	base, err := rootfs(busybox)
	if err != nil {
		return err
	}
	server, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	builder := append(base[:len(base):len(base)], entry{"prebuilt", 0o755, server, ""}, entry{"bin/go", 0o755, []byte(standIn), ""})
	if err := errors.Join(load(d, baseImage, base), load(d, builderImage, builder)); err != nil {
		return err
	}
	for image, target := range map[string][]string{execImage: nil, scratchImage: {"--target", "minimal"}} {
		args := append([]string{"build", "--network", "none", "--tag", image, "--build-arg", "BASE=" + baseImage, "--build-arg", "BUILDER=" + builderImage}, target...)
		if _, err := d.run(append(args, "..")...); err != nil {
			return err
		}
	}
	return nil
}

// standIn is go in the builder: it has nothing to download, and "builds" by
// copying what was built outside.
const standIn = `#!/bin/sh
[ "$1" = build ] || exit 0
while [ "$1" != -o ]; do shift || exit 1; done
mkdir -p "${2%/*}" && cp /prebuilt "$2"
`

// An entry is one name in an image.
type entry struct {
	name string // ends in a slash for a directory
	mode int64
	data []byte
	link string // where it leads, for a link
}

// rootfs is the file system of a small Linux.
func rootfs(busybox string) ([]entry, error) {
	data, err := os.ReadFile(busybox)
	if err != nil {
		return nil, err
	}
	tools, err := output(exec.Command(busybox, "--list"))
	if err != nil {
		return nil, err
	}
	all := []entry{{"bin/", 0o755, nil, ""}, {"etc/", 0o755, nil, ""}, {"tmp/", 0o1777, nil, ""},
		{"etc/passwd", 0o644, []byte("root:x:0:0:root:/root:/bin/sh\n"), ""}, {"bin/busybox", 0o755, data, ""}}
	for tool := range strings.FieldsSeq(tools) {
		if tool != "busybox" {
			all = append(all, entry{"bin/" + tool, 0o777, nil, "busybox"})
		}
	}
	return all, nil
}

// An importer is what makes images: a client of an engine.
type importer interface {
	command(args ...string) *exec.Cmd
}

// load makes an image of a file system; changes are lines of a Dockerfile.
func load(e importer, image string, all []entry, changes ...string) error {
	archive, err := tarball(all)
	if err != nil {
		return err
	}
	args := []string{"import", "--change", "LABEL " + imageLabel}
	for _, change := range changes {
		args = append(args, "--change", change)
	}
	cmd := e.command(append(args, "-", image)...)
	cmd.Stdin = archive
	_, err = output(cmd)
	return err
}

// tarball is a file system as engines of containers import it.
func tarball(all []entry) (io.Reader, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, e := range all {
		h := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.data)), Linkname: e.link, Typeflag: tar.TypeReg}
		switch {
		case e.link != "":
			h.Typeflag = tar.TypeSymlink
		case strings.HasSuffix(e.name, "/"):
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, err
		}
	}
	return &archive, w.Close()
}
