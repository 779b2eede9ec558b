//go:build linux

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// hardened is how README.md tells to run a container; there is no network for
// whom the daemon of the tests could make one.
var hardened = []string{"--network", "none", "--read-only", "--tmpfs", "/tmp"}

// shared is a workspace that the user of the container, whoever that is, may write.
func shared(t *testing.T) string {
	t.Helper()
	dir := workspace(t)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A container is a server in one of the images, with a client that speaks to it.
type container struct {
	*client
	d    *docker
	name string
}

// serve starts a container with the given options of docker run.
func (d *docker) serve(t *testing.T, image, dir string, options ...string) *container {
	t.Helper()
	name := strings.NewReplacer("/", "-", " ", "-").Replace(fmt.Sprintf("perstack-base-e2e-%d-%s", os.Getpid(), t.Name()))
	args := append([]string{"run", "-i", "--name", name, "-v", dir + ":/workspace"}, options...)
	c := &container{startCommand(t, d.command(append(args, image)...)), d, name}
	t.Cleanup(func() { _, _ = d.run("rm", "-f", name) })
	c.initialize()
	return c
}

// outside runs a shell command line in the container, by Docker and not by the
// server, so that nothing but the container itself holds it back.
func (c *container) outside(line string) (string, error) {
	return c.d.run("exec", c.name, "sh", "-c", line)
}

// pid is the server's process id, seen from here.
func (c *container) pid() int {
	c.t.Helper()
	out, err := c.d.run("inspect", "--format", "{{.State.Pid}}", c.name)
	if err != nil {
		c.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		c.t.Fatal(err)
	}
	return pid
}

// TestContainerServesFiles: both images serve as whom the Dockerfile says, on a
// root that cannot be written, and without a place for temporary files.
func TestContainerServesFiles(t *testing.T) {
	d := needDocker(t)
	for name, image := range map[string]string{"exec": execImage, "scratch": scratchImage} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := shared(t)
			c := d.serve(t, image, dir, "--network", "none", "--read-only")
			var list struct{ Tools []struct{ Name string } }
			if err := json.Unmarshal(c.request("tools/list", nil), &list); err != nil || len(list.Tools) != 9 {
				t.Errorf("the tools are %v (%v)", list.Tools, err)
			}
			for _, call := range []struct{ tool, args, want string }{
				{"writeTextFile", `{"path":"a.txt","text":"one\ntwo\n"}`, `"path":"/workspace/a.txt"`},
				{"readTextFile", `{"path":"a.txt","from":1}`, `two\n`},
				{"editTextFile", `{"path":"/workspace/a.txt","oldText":"two","newText":"three"}`, "three"},
			} {
				result, err := c.call(call.tool, json.RawMessage(call.args))
				if err != nil || result.IsError || !strings.Contains(text(t, result), call.want) {
					t.Errorf("%s answered %v (%v)", call.tool, result, err)
				}
			}
			if data, err := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || string(data) != "one\nthree\n" {
				t.Errorf("the file holds %q (%v)", data, err)
			}
			result, err := c.call("exec", run("true"))
			if err != nil || !result.IsError || !strings.Contains(text(t, result), "--tmpfs /tmp") {
				t.Errorf("a command without a place for temporary files answered %v (%v)", result, err)
			}
			if user := status(t, c.pid(), "Uid:"); user != 65532 {
				t.Errorf("the server runs as user %d", user)
			}
			c.in.Close()
			if code := c.end(); code != 0 {
				t.Errorf("exit code %d: %s", code, c.stderr.String())
			}
			if out, err := d.run("run", "--rm", "--network", "none", image, "call", "writeTextFile", "path=a.txt", "text=x"); err != nil {
				t.Errorf("the workspace of the image: %s %v", out, err)
			}
		})
	}
}

// TestContainerOwner: a workspace of somebody else cannot be written, and the
// refusal names the way out, which works.
func TestContainerOwner(t *testing.T) {
	d := needDocker(t)
	dir := workspace(t)
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chown(dir, 1234, 1234)); err != nil {
		t.Skip("this needs root: ", err)
	}
	for _, profile := range []struct{ tools, call string }{
		{"perstack", `writeTextFile {"path":"a.txt","text":"x"}`},
		{"baseagent", `write_file {"file_path":"b.txt","content":"x"}`},
		{"baseagent", `apply_patch {"patch":"*** Begin Patch\n*** Add File: c.txt\n+x\n*** End Patch"}`},
	} {
		tool, args, _ := strings.Cut(profile.call, " ")
		run := func(options ...string) (string, error) {
			line := append([]string{"run", "--rm", "--network", "none", "-v", dir + ":/workspace"}, options...)
			return d.run(append(line, execImage, "call", tool, args, "--tools", profile.tools)...)
		}
		if out, err := run(); err == nil || !strings.Contains(out, "runs as user 65532") || !strings.Contains(strings.ReplaceAll(out, `\"`, `"`), `--user "$(id -u):$(id -g)"`) {
			t.Errorf("%s of a workspace of somebody else: %s (%v)", tool, out, err)
		}
		if out, err := run("--user", "1234:1234"); err != nil {
			t.Errorf("%s of a workspace of one's own: %s (%v)", tool, out, err)
		}
	}
	for options, want := range map[string]bool{"": true, "--user=1234:1234": false} {
		args := []string{"--network", "none"}
		if options != "" {
			args = append(args, options)
		}
		c := d.serve(t, execImage, dir, args...)
		c.in.Close()
		code := c.end()
		if said := strings.Contains(c.stderr.String(), "does not own the workspace"); code != 0 || said != want {
			t.Errorf("started with %q: exit code %d: %s", options, code, c.stderr.String())
		}
		_, _ = d.run("rm", "-f", c.name)
	}
}

// TestContainerToolchain: the recipe for an image with a toolchain builds one that
// works, from whatever image and whatever user.
func TestContainerToolchain(t *testing.T) {
	d := needDocker(t)
	page, err := os.ReadFile("../docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, recipe, _ := strings.Cut(string(page), "```dockerfile\n")
	recipe, _, ok := strings.Cut(recipe, "```")
	if !ok || !strings.Contains(recipe, "FROM node:22\n") || !strings.Contains(recipe, "--from=perstack-base ") {
		t.Fatalf("docs/recipes.md has no recipe for an image: %s", recipe)
	}
	recipe = strings.NewReplacer("node:22", baseImage, "--from=perstack-base ", "--from="+execImage+" ").Replace(recipe)
	const image = "perstack-base-e2e:toolchain"
	build := d.command("build", "--network", "none", "--label", imageLabel, "--tag", image, "-")
	build.Stdin = strings.NewReader(recipe)
	if out, err := output(build); err != nil {
		t.Fatal(out, err)
	}
	t.Cleanup(func() { _, _ = d.run("rmi", "-f", image) })
	dir := workspace(t)
	c := d.serve(t, image, dir, "--network", "none", "--user", fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()))
	if result, err := c.call("exec", run("echo made > here && cat here")); err != nil || result.IsError || !strings.Contains(text(t, result), "made") {
		t.Errorf("a command in the image: %v (%v)", result, err)
	}
}

// TestContainerHealth: an image that speaks stdio is well, and one that serves
// HTTP when it answers.
func TestContainerHealth(t *testing.T) {
	d := needDocker(t)
	for _, image := range []string{execImage, scratchImage} {
		out, err := d.run("inspect", "--format", "{{json .Config.Healthcheck.Test}}", image)
		var test []string
		if err != nil || json.Unmarshal([]byte(out), &test) != nil || len(test) < 2 || test[0] != "CMD" {
			t.Fatal(out, err)
		}
		check := func(environment ...string) error {
			args := []string{"run", "--rm", "--network", "none", "--entrypoint", test[1]}
			for _, e := range environment {
				args = append(args, "--env", e)
			}
			_, err := d.run(append(append(args, image), test[2:]...)...)
			return err
		}
		if err := check(); err != nil {
			t.Errorf("%s on stdio: %v", image, err)
		}
		if err := check("PERSTACK_BASE_TRANSPORT=http", "PERSTACK_BASE_LISTEN=127.0.0.1:8080"); err == nil {
			t.Errorf("%s: a server that does not run is well", image)
		}
	}
}

// users are whom a container may run as: the Dockerfile's without any rights, and
// root with those that Docker gives.
var users = map[string][]string{
	"plain user": {"--cap-drop", "ALL", "--security-opt", "no-new-privileges"},
	"root":       {"--user", "0:0"},
}

// TestContainerDoctor: what the sandbox promises holds below Docker's own
// restrictions as well. (That Docker's default profile is in force shows in the
// broker's way of working.)
func TestContainerDoctor(t *testing.T) {
	confined(t)
	d := needDocker(t)
	for name, user := range users {
		for _, image := range []string{execImage, scratchImage} {
			t.Run(name+" "+image, func(t *testing.T) {
				t.Parallel()
				args := append(append([]string{"run", "--rm"}, hardened...), user...)
				out, err := d.run(append(args, image, "doctor", "--json")...)
				if err != nil {
					t.Fatal(out, err)
				}
				type check struct{ Proven bool }
				var found struct {
					Confined bool
					Status   struct {
						LandlockABI                   int
						Seccomp, Broker, Injected     bool
						Files, Network, Signals, Kill check
					}
				}
				if err := json.Unmarshal([]byte(out), &found); err != nil {
					t.Fatal(err)
				}
				s := found.Status
				if !found.Confined || !s.Seccomp || !s.Broker || !s.Injected || !s.Files.Proven || !s.Network.Proven || !s.Signals.Proven {
					t.Errorf("doctor found %s", out)
				}
				if s.LandlockABI >= 6 && !s.Kill.Proven {
					t.Errorf("commands cannot be ended for certain: %s", out)
				}
			})
		}
	}
}

// TestContainerConfinesCommands: inside, commands work and are kept in. What is
// refused is not refused by the container: outside of the sandbox it works.
func TestContainerConfinesCommands(t *testing.T) {
	confined(t)
	d := needDocker(t)
	for name, user := range users {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := d.serve(t, execImage, shared(t), append(hardened, user...)...)
			if _, err := c.outside("touch /tmp/outside && mkdir /tmp/www && echo theirs > /tmp/www/page && httpd -p 127.0.0.1:8081 -h /tmp/www"); err != nil {
				t.Fatal(err)
			}
			for _, call := range []struct{ name, line, want string }{
				{"a file and its mode", "touch own && chmod 600 own && stat -c %a own", `600\n`},
				{"temporary files", "echo x > $TMPDIR/a && cat $TMPDIR/a && cp $TMPDIR/a ~/b && cat ~/b", `x\nx\n`},
				{"own server", "mkdir -p www && echo hello > www/page && httpd -p 127.0.0.1:8080 -h www && wget -qO- http://127.0.0.1:8080/page", `hello\n`},
				{"own server, by a later command", "wget -qO- http://127.0.0.1:8080/page", `hello\n`},
				{"a pipe and a background job", "(sleep 0.1; echo late) & seq 1 3 | tail -1; wait", `3\nlate\n`},
			} {
				result, err := c.call("exec", run(call.line))
				if err != nil || result.IsError || !strings.Contains(text(t, result), call.want) {
					t.Errorf("%s: %v (%v)", call.name, result, err)
				}
			}
			for _, call := range []struct{ line, hint string }{
				{"cat /tmp/outside", "--allow-read /tmp/outside"},
				{"echo x > /tmp/outside", "--allow-write /tmp/outside"},
				{"chmod 644 /tmp/outside", "/tmp/outside"},
				{"rm /tmp/www/page && touch /tmp/www/page", ""},
				{"kill -CONT 1", "signal the process 1"},
				{"wget -qO- http://127.0.0.1:8081/page", "where a server outside the session listens"},
			} {
				result, err := c.call("exec", run(call.line))
				if err != nil || !result.IsError || !strings.Contains(text(t, result), call.hint) {
					t.Errorf("%s is not refused with %q: %v (%v)", call.line, call.hint, result, err)
				}
				if _, err := c.outside(call.line); err != nil {
					t.Errorf("the refusal proves nothing: %v", err)
				}
			}
		})
	}
}

// TestContainerScratchRuns: in the image without any program, a command is one
// that the workspace brings, and it is kept in like any other.
func TestContainerScratchRuns(t *testing.T) {
	confined(t)
	d := needDocker(t)
	dir := shared(t)
	busybox, err := staticBusybox()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(busybox)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "busybox"), data, 0o755); err != nil {
		t.Fatal(err)
	}
	c := d.serve(t, scratchImage, dir, hardened...)
	exec := func(command string, args ...string) (answer string, failed bool) {
		raw, _ := json.Marshal(map[string]any{"command": command, "args": append([]string{}, args...), "env": map[string]string{}, "cwd": "", "stdout": true, "stderr": true})
		result, err := c.call("exec", raw)
		if err != nil {
			t.Fatal(err)
		}
		return text(t, result), result.IsError
	}
	if got, failed := exec("./busybox", "ls"); failed || !strings.Contains(got, "busybox") {
		t.Errorf("a program of the workspace: %s", got)
	}
	if got, failed := exec("ls"); !failed || !strings.Contains(got, "not found") {
		t.Errorf("a program that is not there: %s", got)
	}
	if got, failed := exec("./busybox", "head", "-c", "4", "/perstack-base"); !failed || !strings.Contains(got, "--allow-read /perstack-base") {
		t.Errorf("a file outside: %s", got)
	}
	if out, err := d.run("exec", c.name, "/workspace/busybox", "head", "-c", "4", "/perstack-base"); err != nil || out != "\x7fELF" {
		t.Errorf("the refusal proves nothing: %q (%v)", out, err)
	}
}

// TestContainerReaps: as process 1 the server inherits every orphan, and none
// stays a zombie.
func TestContainerReaps(t *testing.T) {
	d := needDocker(t)
	dir := shared(t)
	c := d.serve(t, execImage, dir, hardened...)
	const daemon = `(setsid sh -c 'while [ "$(cut -d" " -f4 /proc/$$/stat)" != 1 ]; do sleep 0.05; done; echo $$ > NAME' > /dev/null 2>&1 &)`
	names := []string{"first", "second", "third"}
	for _, name := range names {
		if result, err := c.call("exec", run(strings.ReplaceAll(daemon, "NAME", name))); err != nil || result.IsError {
			t.Fatal(result, err)
		}
	}
	ids := strings.Trim(fmt.Sprint(told(t, dir, names...)), "[]")
	if out, err := c.outside(`timeout 20 sh -c 'for id in ` + ids + `; do while [ -e /proc/$id ]; do sleep 0.1; done; done'`); err != nil {
		stat, _ := c.outside("cat /proc/[0-9]*/stat")
		t.Errorf("not all of %s are gone: %s %v\n%s", ids, out, err, stat)
	}
}

// containerCache is where the cache of the workspace lies in an image whose user has
// no home directory to write in.
const containerCache = "/tmp/perstack-base-65532"

// TestContainerEnds: asked to stop, and when its input ends, the server is done
// before Docker would kill it, and leaves nothing behind but the cache.
func TestContainerEnds(t *testing.T) {
	d := needDocker(t)
	for name, end := range map[string]func(*container) error{
		"stop":         func(c *container) error { _, err := d.run("stop", "--time", "4", c.name); return err },
		"end of input": func(c *container) error { return c.in.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := shared(t)
			c := d.serve(t, execImage, dir, "--network", "none") // on a root that shows what is left
			c.send("tools/call", callParams("exec", run("echo x > $TMPDIR/left; echo x > ~/left; "+stubborn)))
			told(t, dir, "leader", "child", "daemon")
			if made, err := d.run("diff", c.name); err != nil || !strings.Contains(made, "/left") {
				t.Errorf("the command left nothing that could be found: %s (%v)", made, err)
			}
			if err := end(c); err != nil {
				t.Error(err)
			}
			if code := c.end(); code != 0 {
				t.Errorf("exit code %d: %s", code, c.stderr.String())
			}
			left, err := d.run("diff", c.name)
			for line := range strings.Lines(left) {
				if strings.HasPrefix(line, "A ") && !strings.HasPrefix(line, "A "+containerCache) {
					t.Errorf("left behind: %s", line)
				}
			}
			if err != nil || !strings.Contains(left, containerCache) {
				t.Errorf("the workspace's cache is not there: %s (%v)", left, err)
			}
		})
	}
}
