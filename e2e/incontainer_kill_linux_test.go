package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// clinging does what a command can do to stay: it ignores signals, leaves its process
// group and session, and has grandchildren whose parents are gone.
const clinging = `trap '' TERM HUP INT
(trap '' TERM HUP INT; (setsid sh -c 'echo $$ > double; sleep 300' &) &)
` + stubborn

// clingers are the files with the ids of its processes.
var clingers = []string{"leader", "child", "daemon", "double"}

// TestInContainerKills: whatever ends a command or the server, no process of a
// command stays, and no container stays after the server.
func TestInContainerKills(t *testing.T) {
	cancel := func(c *client, id string) {
		c.notify("notifications/cancelled", map[string]any{"requestId": json.RawMessage(id)})
	}
	for _, end := range []struct {
		name    string
		timeout string
		do      func(c *client, id string)
		goesOn  bool // the server
	}{
		{"timeout", "timeout=3000", func(*client, string) {}, true},
		{"cancel", "timeout=0", cancel, true},
		{"end of input", "timeout=0", func(c *client, _ string) { c.in.Close() }, false},
		{"SIGTERM", "timeout=0", func(c *client, _ string) { c.cmd.Process.Signal(syscall.SIGTERM) }, false},
		{"SIGKILL", "timeout=0", func(c *client, _ string) { c.cmd.Process.Kill() }, false},
	} {
		t.Run(end.name, func(t *testing.T) {
			onEachEngine(t, func(t *testing.T, e *engine) {
				dir := workspace(t)
				c := e.start(t, dir, busyboxImage)
				c.said("true") // so that the time of the command is its own
				container := e.one(t, dir)
				id, _ := c.send("tools/call", callParams("exec", run(clinging, end.timeout)))
				told(t, dir, clingers...)
				if end.timeout == "timeout=0" && len(inside(dir)) < len(clingers) {
					t.Fatalf("the processes %v are not all of the command: whether it is ended cannot be seen", inside(dir))
				}
				end.do(c, id)
				if !end.goesOn {
					c.end()
				}
				deserted(t, dir)
				if !end.goesOn {
					e.none(t, dir)
					return
				}
				if got := c.said("echo on"); got != "on" {
					t.Errorf("the next command prints %q", got)
				}
				if again := e.one(t, dir); again != container {
					t.Errorf("the container %s was replaced by %s", container, again)
				}
			})
		})
	}
}

// inside are the processes whose working directory is dir or below, by whatever mount.
func inside(dir string) (ids []string) {
	want, err := os.Stat(dir)
	if err != nil {
		return nil
	}
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range all {
		stat, _ := os.ReadFile(proc + "/stat")
		at, err := os.Stat(proc + "/cwd")
		name, _ := os.Readlink(proc + "/exe")
		if err == nil && os.SameFile(at, want) && !strings.Contains(string(stat), ") Z ") && filepath.Base(name) == "busybox" {
			ids = append(ids, filepath.Base(proc))
		}
	}
	return ids
}

// deserted waits until no command has a process in dir.
func deserted(t *testing.T, dir string) {
	t.Helper()
	for deadline := time.Now().Add(hangGuard); ; time.Sleep(20 * time.Millisecond) {
		ids := inside(dir)
		if len(ids) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("the processes %v are left", ids)
			return
		}
	}
}

// TestInContainerRemoved: a container that somebody else removes takes its command
// with it; the next command has a new one, and says so once.
func TestInContainerRemoved(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e *engine) {
		dir := workspace(t)
		c := e.start(t, dir, busyboxImage)
		_, answer := c.send("tools/call", callParams("exec", run("echo $$ > running; sleep 300", "timeout=0")))
		told(t, dir, "running")
		first := e.one(t, dir)
		if _, err := e.run("rm", "-f", first); err != nil {
			t.Fatal(err)
		}
		if m := c.wait(answer); !strings.Contains(string(m.Result), `\"code\":\"unavailable\"`) {
			t.Errorf("the command whose container was removed answered %s", m.Result)
		}
		deserted(t, dir)
		result, err := c.call("exec", run("echo on"))
		if err != nil || result.IsError || !strings.Contains(text(t, result), `"output":"on\n"`) || !strings.Contains(text(t, result), `"hint":`) {
			t.Errorf("the next command answered %s (%v)", text(t, result), err)
		}
		if result, err = c.call("exec", run("echo again")); err != nil || strings.Contains(text(t, result), `"hint":`) {
			t.Errorf("the one after that answered %s (%v)", text(t, result), err)
		}
		if second := e.one(t, dir); second == first {
			t.Errorf("the container is still %s", first)
		}
	})
}

// TestInContainerPaused: a container that does not run any more ends its command
// by the heartbeat, and the session goes on in another one.
func TestInContainerPaused(t *testing.T) {
	t.Parallel()
	e := needEngine(t, "docker")
	dir := workspace(t)
	c := e.start(t, dir, busyboxImage)
	_, answer := c.send("tools/call", callParams("exec", run("echo $$ > running; sleep 300", "timeout=0")))
	told(t, dir, "running")
	paused := e.one(t, dir)
	if _, err := e.run("pause", paused); err != nil {
		t.Skip("containers cannot be paused here: ", err)
	}
	t.Cleanup(func() { _, _ = e.run("rm", "-f", paused) })
	if m := c.wait(answer); !strings.Contains(string(m.Result), `\"code\":\"unavailable\"`) {
		t.Errorf("the command whose container was paused answered %s", m.Result)
	}
	if got := c.said("echo on"); got != "on" {
		t.Errorf("the next command prints %q", got)
	}
}

// TestInContainerEngineEnds: when the engine stops or is killed, a running command
// fails and nothing of it stays; when there is an engine again, so are commands.
func TestInContainerEngineEnds(t *testing.T) {
	t.Parallel()
	needEngine(t, "docker") // or it is skipped
	for name, end := range map[string]func(t *testing.T, d *daemon){
		"stopped": func(_ *testing.T, d *daemon) { d.end() },
		"killed":  func(t *testing.T, d *daemon) { d.kill(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home, err := os.MkdirTemp("", "perstack-base-docker-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(home) })
			d, err := startDaemon(home)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { d.end() })
			e, err := dockerAt(d.host)
			if err != nil {
				t.Fatal(err)
			}
			dir := workspace(t)
			e.need(t, busyboxImage)
			c := start(t, dir, e.flags(busyboxImage)...)
			c.initialize()
			_, answer := c.send("tools/call", callParams("exec", run(clinging, "timeout=0")))
			told(t, dir, clingers...)
			end(t, d)
			if m := c.wait(answer); !strings.Contains(string(m.Result), `\"code\":\"unavailable\"`) {
				t.Errorf("the running command answered %s", m.Result)
			}
			deserted(t, dir)
			result, err := c.call("exec", run("true"))
			if err != nil || !result.IsError || !strings.Contains(text(t, result), `"code":"unavailable"`) {
				t.Errorf("without an engine: %s (%v)", text(t, result), err)
			}
			if d, err = startDaemon(home); err != nil {
				t.Fatal(err)
			}
			if got := c.said("echo on"); got != "on" {
				t.Errorf("with an engine again: %q", got)
			}
			e.one(t, dir)
			c.in.Close()
			c.end()
			e.none(t, dir)
		})
	}
}

// kill ends a daemon without a warning: the daemon, its containerd, not the containers.
func (d *daemon) kill(t *testing.T) {
	t.Helper()
	for _, file := range []string{"pid", "exec/containerd/containerd.pid"} {
		pid := written(d.dir, file)
		if pid == 0 {
			t.Fatalf("%s holds no process id", file)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		os.Remove(filepath.Join(d.dir, file))
	}
	d.end()
}

// TestInContainerReconciles: what a server that was killed left behind goes when the
// next one starts, and what is of a server that lives stays.
func TestInContainerReconciles(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e *engine) {
		dir := workspace(t)
		c := e.start(t, dir, busyboxImage)
		c.said("true")
		live := e.one(t, dir)
		dead := start(t, dir, e.flags(busyboxImage)...)
		dead.initialize()
		dead.said("true")
		var left string
		for _, id := range e.containers(t, dir) {
			if id == live {
				continue
			}
			name := strings.TrimPrefix(e.inspect(t, id, "{{.Name}}"), "/")
			name = name[:strings.LastIndex(name, "-")+1] + "0123456789ab" // one of the same server
			args := []string{"run", "-d", "--network", "none", "-v", dir + ":" + dir, "--name", name}
			for label := range strings.FieldsSeq("perstack-base.workspace perstack-base.session perstack-base.server") {
				args = append(args, "--label", label+"="+e.inspect(t, id, `{{index .Config.Labels "`+label+`"}}`))
			}
			out, err := e.run(append(args, busyboxImage, "sh", "-c", "trap exit TERM; sleep 600 & wait")...)
			if err != nil {
				t.Fatal(err)
			}
			left = strings.TrimSpace(out)
			t.Cleanup(func() { _, _ = e.run("rm", "-f", left) })
		}
		dead.kill()
		next := start(t, dir, e.flags(busyboxImage)...)
		next.initialize()
		next.said("true")
		e.until(t, dir, 2) // of the living and the new server
		if ids := strings.Join(e.containers(t, dir), " "); left == "" || strings.Contains(ids, left) || !strings.Contains(ids, live) {
			t.Errorf("there are %s; %s was to go and %s to stay", ids, left, live)
		}
		if got := c.said("echo on"); got != "on" {
			t.Errorf("the living server's command prints %q", got)
		}
		next.kill()
	})
}

// until waits until dir has so many containers.
func (e *engine) until(t *testing.T, dir string, number int) {
	t.Helper()
	for deadline := time.Now().Add(hangGuard); ; time.Sleep(100 * time.Millisecond) {
		ids := e.containers(t, dir)
		if len(ids) == number {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("there are %d containers, want %d: %v", len(ids), number, ids)
			return
		}
	}
}

// TestInContainerOutput: 300 MB of output fill neither the server, nor the runner,
// nor the disk of the engine.
func TestInContainerOutput(t *testing.T) {
	t.Parallel()
	e := needEngine(t, "docker")
	dir := workspace(t)
	c := e.start(t, dir, busyboxImage)
	result, err := c.call("exec", run(`head -c 300000000 /dev/zero | tr '\0' 'x'`))
	if err != nil || result.IsError || !strings.Contains(text(t, result), "300000000 bytes in all") {
		t.Fatalf("300 MB answered %.300s (%v)", text(t, result), err)
	}
	if got := peakKB(t, c.cmd.Process.Pid); got > bigOutputKB {
		t.Errorf("the server grew to %d KB, more than %d", got, bigOutputKB)
	}
	id := e.one(t, dir)
	if got := peakOf(t, e.inspect(t, id, "{{.State.Pid}}")); got > bigOutputKB {
		t.Errorf("the runner grew to %d KB, more than %d", got, bigOutputKB)
	}
	if path := e.inspect(t, id, "{{.LogPath}}"); path != "" {
		t.Errorf("the engine writes what commands print to %s", path)
	}
}

// TestInContainerRefusals: what cannot be is said in a sentence, at the start where
// that needs no engine, else when the first command comes.
func TestInContainerRefusals(t *testing.T) {
	e := needEngine(t, "docker")
	e.need(t, busyboxImage)
	dir := workspace(t)
	for _, start := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--container", busyboxImage, "--container-engine", "no-such-engine"}, "no-such-engine"},
		{[]string{"--container", busyboxImage, "--container-engine", e.path, "--max-memory", "lots"}, "lots"},
		{[]string{"--container", "", "--container-engine", e.path}, "name of an image"},
		{[]string{"--container", "--privileged", "--container-engine", e.path}, "not the name of an image"},
		{[]string{"--container", busyboxImage, "--container-engine", e.path, "--allow-read", "/proc"}, "a container has its own"},
	} {
		_, stderr, code := cli(t, dir, nil, append([]string{"serve"}, start.flags...)...)
		if code != 2 || !strings.Contains(stderr, start.want) {
			t.Errorf("%v: exit code %d, %s", start.flags, code, stderr)
		}
	}
	nowhere, err := newEngine("docker", `DOCKER_HOST=unix:///nowhere/docker.sock exec docker "$@"`)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		engine *engine
		image  string
		want   []string
	}{
		"no daemon": {nowhere, busyboxImage, []string{"daemon", "unix:///nowhere/docker.sock"}},
		"no image":  {e, "localhost:1/no/such-image:1", []string{"localhost:1/no/such-image:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := workspace(t)
			server := start(t, dir, c.engine.flags(c.image)...)
			server.initialize()
			result, err := server.call("exec", run("true"))
			if err != nil || !result.IsError || !strings.Contains(text(t, result), `"code":"unavailable"`) {
				t.Fatalf("got %s (%v)", text(t, result), err)
			}
			for _, want := range c.want {
				if !strings.Contains(text(t, result), want) {
					t.Errorf("%s does not say %q", text(t, result), want)
				}
			}
			if result, err = server.call("writeTextFile", json.RawMessage(`{"path":"a.txt","text":"x"}`)); err != nil || result.IsError {
				t.Errorf("files need no container: %v (%v)", result, err)
			}
			out, _, code := cli(t, dir, nil, "doctor", "--container", c.image, "--container-engine", c.engine.path)
			if code == 0 || !strings.Contains(out, c.want[len(c.want)-1]) {
				t.Errorf("doctor: exit code %d, %.300s", code, out)
			}
		})
	}
}

// TestInContainerElsewhere: a daemon that does not see the workspace is no engine for
// it, and that is said before a command runs in another directory.
func TestInContainerElsewhere(t *testing.T) {
	t.Parallel()
	e := needEngine(t, "docker")
	e.need(t, busyboxImage)
	empty := t.TempDir()
	for name, source := range map[string]string{"other directories": empty, "no directories": filepath.Join(empty, "none")} {
		t.Run(name, func(t *testing.T) {
			// What the client asks to be mounted, but for the server's program, is of
			// the daemon's machine, and that is another one.
			remote, err := newEngine("docker", `for a; do
	case $a in type=bind,source=*,target=/.perstack-base*) ;;
	type=bind,source=*) a=type=bind,source=`+source+`,${a#*,*,} ;; esac
	set -- "$@" "$a"; shift
done
exec `+e.path+` "$@"`)
			if err != nil {
				t.Fatal(err)
			}
			dir := workspace(t)
			c := start(t, dir, remote.flags(busyboxImage)...)
			c.initialize()
			result, err := c.call("exec", run("echo ran > made; echo ran"))
			got := text(t, result)
			if err != nil || !result.IsError || !strings.Contains(got, `"code":"unavailable"`) || !strings.Contains(got, "does not see the files of this server") {
				t.Errorf("with a daemon of another machine: %s (%v)", got, err)
			}
			if exists(filepath.Join(empty, "made")) {
				t.Error("the command ran")
			}
			e.none(t, dir)
		})
	}
}

func peakOf(t *testing.T, pid string) int {
	t.Helper()
	n := 0
	if _, err := exec.Command("kill", "-0", pid).Output(); err != nil {
		t.Fatal(err)
	}
	for _, c := range pid {
		n = 10*n + int(c-'0')
	}
	return peakKB(t, n)
}
