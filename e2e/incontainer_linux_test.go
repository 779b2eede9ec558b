package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/perstack-ai/perstack-base/e2e/transcript"
)

// TestInContainerTranscripts replays what is known to be true of every tool: that
// its commands run in a container changes no answer.
func TestInContainerTranscripts(t *testing.T) {
	scripts, err := transcript.Load("../testdata/transcripts")
	if err != nil {
		t.Fatal(err)
	}
	onEachEngine(t, func(t *testing.T, e *engine) {
		for _, script := range scripts {
			if !runsCommands(script) {
				continue
			}
			t.Run(script.Profile+"/"+script.Tool, func(t *testing.T) {
				t.Parallel()
				dir := workspace(t)
				if err := script.Setup(dir); err != nil {
					t.Fatal(err)
				}
				c := e.start(t, dir, fullImage, append([]string{"--tools", script.Profile}, script.Arguments(dir)...)...)
				answers, err := script.Run(dir, c.call)
				if err != nil {
					t.Fatal(err)
				}
				if diff := script.Diff(answers); diff != "" {
					t.Error(diff)
				}
			})
		}
	})
}

// runsCommands tells whether a transcript has to do with commands: it is one of a
// profile of skills or terminals, or of a tool that runs one.
func runsCommands(s *transcript.Script) bool {
	switch s.Profile {
	case "skills", "echo", "terminal":
		return true
	}
	return slices.Contains([]string{"exec", "shell_command"}, s.Tool)
}

// said runs a shell command line with exec, which must succeed, and returns what it prints.
func (c *client) said(line string) string {
	c.t.Helper()
	result, err := c.call("exec", run(line))
	if err != nil || result.IsError {
		c.t.Fatalf("%s answered %v (%v)", line, result, err)
	}
	return printed(c.t, text(c.t, result))
}

// printed is what an answer of exec says that a command printed, "" for nothing.
func printed(t testing.TB, answer string) string {
	t.Helper()
	var a struct{ Output, Stdout string }
	if err := json.Unmarshal([]byte(answer), &a); err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
	if strings.HasPrefix(a.Output, "Command executed successfully, but") {
		return ""
	}
	return strings.TrimSpace(a.Output + a.Stdout)
}

// TestInContainerWalls: what is around a command is the container and nothing else.
func TestInContainerWalls(t *testing.T) {
	t.Setenv("DEPLOY_TOKEN", "sesame")
	t.Setenv("HOST_TOOLCHAIN", "/opt/of-the-host")
	t.Setenv("PROJECT_COLOR", "blue")
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "sesame")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	// Not parallel to others: the environment is of the whole process.
	for _, name := range []string{"docker", "podman"} {
		t.Run(name, func(t *testing.T) {
			e := needEngine(t, name)
			dir := workspace(t)
			c := e.start(t, dir, busyboxImage)
			for _, look := range []struct{ what, line, want string }{
				{"the image's files", "cat /app/banner", "of the image"},
				{"the image's variables", "echo $FROM_IMAGE $PATH", "said-by-the-image /usr/local/bin:/usr/bin:/bin"},
				{"the server's variables", "echo $PROJECT_COLOR-$DEPLOY_TOKEN-$HOST_TOOLCHAIN-", "blue---"},
				{"the workspace", "pwd; echo made > made; cat made", dir + "\nmade"},
				{"a private home and a place for temporary files", "echo x > ~/a && echo y > $TMPDIR/b && cat ~/a $TMPDIR/b", "x\ny"},
				{"programs in /tmp", "printf '#!/bin/sh\\necho ran\\n' > /tmp/p && chmod +x /tmp/p && /tmp/p", "ran"},
				{"a root that cannot be written", "(echo x > /app/new) 2>&1 | grep -c 'Read-only file system'", "1"},
				{"the user", "id -u; id -g", fmt.Sprintf("%d\n%d", os.Getuid(), os.Getgid())},
				{"capabilities", "grep -c -E '^Cap(Inh|Prm|Eff|Bnd|Amb):.0000000000000000$' /proc/self/status", "5"},
				{"no new privileges", "grep NoNewPrivs /proc/self/status", "NoNewPrivs:\t1"},
				{"networks", "ls /sys/class/net", "lo"},
				{"a server of its own", "mkdir www && echo hello > www/page && httpd -p 127.0.0.1:8080 -h www && wget -qO- http://127.0.0.1:8080/page", "hello"},
				{"a server of an earlier command", "wget -qO- http://127.0.0.1:8080/page", "hello"},
				{"sockets of anybody", "find / -xdev -type s 2>/dev/null; find /run /var /tmp -name '*.sock' 2>/dev/null; true", ""},
				{"files of the host", "cat " + secret + " 2>&1 | grep -c 'No such file'", "1"},
				{"a server of the host", "wget -qO- http://127.0.0.1:" + port + " 2>&1 | grep -c -i 'refused'", "1"},
			} {
				if result, err := c.call("exec", run(look.line)); err != nil || printed(t, text(t, result)) != look.want {
					t.Errorf("%s: %s answered %s (%v), want %q", look.what, look.line, text(t, result), err, look.want)
				}
			}
			if data, err := os.ReadFile(filepath.Join(dir, "made")); err != nil || string(data) != "made\n" {
				t.Errorf("the workspace outside holds %q (%v)", data, err)
			}
			wallsAsMade(t, e, e.one(t, dir))
		})
	}
}

// wallsAsMade looks at a container as the engine has made it.
func wallsAsMade(t *testing.T, e *engine, id string) {
	t.Helper()
	for format, want := range map[string]string{
		"{{.HostConfig.NetworkMode}}":    "none",
		"{{.HostConfig.ReadonlyRootfs}}": "true",
		"{{.HostConfig.Privileged}}":     "false",
		"{{.HostConfig.AutoRemove}}":     "true",
		"{{.HostConfig.LogConfig.Type}}": "none",
	} {
		if got := e.inspect(t, id, format); got != want {
			t.Errorf("%s is %q, want %q", format, got, want)
		}
	}
	for label := range strings.FieldsSeq("perstack-base.workspace perstack-base.session perstack-base.server") {
		if e.inspect(t, id, `{{index .Config.Labels "`+label+`"}}`) == "" {
			t.Errorf("the container has no label %s", label)
		}
	}
	mounts := e.inspect(t, id, `{{range .Mounts}}{{.Source}}{{"\n"}}{{end}}`)
	for source := range strings.Lines(mounts) {
		if info, err := os.Stat(strings.TrimSpace(source)); err == nil && info.Mode()&os.ModeSocket != 0 {
			t.Errorf("the socket %s is in the container", source)
		}
	}
}

// TestInContainerSkills: a skill runs where its commands run, and its outputs come back.
func TestInContainerSkills(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e *engine) {
		dir := workspace(t)
		write(t, filepath.Join(dir, "skills", "report", "SKILL.md"), skillNamed("report"))
		write(t, filepath.Join(dir, "skills", "report", "scripts", "make.sh"), "echo a report of $(cat /app/banner)> out/report.txt\n")
		c := e.start(t, dir, busyboxImage)
		for _, call := range []struct{ args, want string }{
			{`{"skill":"report","command":"sh scripts/make.sh","output_files":["out/*.txt"]}`, `"content":"a report of of the image\n"`},
			{`{"skill":"report","command":"cat out/report.txt; ls $SKILLS_ROOT; ls -d $SKILL_DIR $WORK_DIR $OUTPUT_DIR $RUN_DIR | wc -l"}`, `"stdout":"a report of of the image\nreport\n4\n"`},
			{`{"skill":"report","command":"(echo x > scripts/make.sh) 2>&1 | grep -c -i -E 'read-only|denied'; (echo x > $SKILLS_ROOT/new) 2>&1 | grep -c -i -E 'read-only|denied'"}`, `"stdout":"1\n1\n"`},
			{`{"skill":"report","command":"echo kept > out/kept.txt","output_files":["out/kept.txt"],"save_as_artifacts":true}`, `"uri":"artifact://out/kept.txt@0"`},
			{`{"skill":"report","command":"cat inputs/kept.txt","inputs":[{"from":"artifact://out/kept.txt@0","to":"inputs/kept.txt"}]}`, `"stdout":"kept\n"`},
			{`{"skill":"report","command":"cd $PROJECT_DIR && ls"}`, `"stdout":"skills\n"`},
		} {
			result, err := c.call("skill_run", json.RawMessage(call.args))
			if err != nil || result.IsError || !strings.Contains(text(t, result), call.want) {
				t.Errorf("%s answered %s (%v), want %s", call.args, text(t, result), err, call.want)
			}
		}
		e.one(t, dir)
	})
}

// TestInContainerEmptyImage: an image needs no program: the workspace may bring it.
func TestInContainerEmptyImage(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e *engine) {
		dir := workspace(t)
		busybox, err := staticBusybox()
		if err != nil {
			t.Skip(err)
		}
		data, err := os.ReadFile(busybox)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "busybox"), data, 0o755); err != nil {
			t.Fatal(err)
		}
		c := e.start(t, dir, emptyImage)
		for _, call := range []struct{ args, want string }{
			{`{"command":"./busybox","args":["ls"],"env":{},"cwd":"","stdout":true,"stderr":true}`, "busybox"},
			{`{"command":"sh","args":[],"env":{},"cwd":"","stdout":true,"stderr":true}`, `"code":"not_found"`},
		} {
			result, err := c.call("exec", json.RawMessage(call.args))
			if err != nil || !strings.Contains(text(t, result), call.want) {
				t.Errorf("%s answered %s (%v), want %s", call.args, text(t, result), err, call.want)
			}
		}
	})
}

// TestInContainerSessions: each session has a container of its own, which ends with
// it; requests without a session share one.
func TestInContainerSessions(t *testing.T) {
	t.Parallel()
	e := needEngine(t, "docker")
	dir := workspace(t)
	s := e.site(t, dir, busyboxImage)
	const sessions = 20
	visitors := make([]*visitor, sessions)
	hosts := make([]string, sessions)
	var all sync.WaitGroup
	for i := range visitors {
		visitors[i] = visit(s, false)
		visitors[i].initialize()
		all.Go(func() {
			visitors[i].mustCall("exec", string(run(fmt.Sprintf("echo %d > /tmp/mark; echo %[1]d > ~/mark", i))), "")
			hosts[i] = visitors[i].mustCall("exec", string(run("cat /tmp/mark ~/mark; hostname")), fmt.Sprintf(`"%d\n%[1]d\n`, i))
		})
	}
	all.Wait()
	slices.Sort(hosts)
	if different := len(slices.Compact(hosts)); different != sessions {
		t.Errorf("%d sessions have %d containers", sessions, different)
	}
	if ids := e.containers(t, dir); len(ids) != sessions {
		t.Errorf("%d sessions have %d containers: %v", sessions, len(ids), ids)
	}
	for _, v := range visitors[1:] {
		end, _ := http.NewRequest(http.MethodDelete, s.url, nil)
		end.Header.Set("Mcp-Session-Id", v.session)
		if resp, err := browserless.Do(end); err != nil || resp.StatusCode != http.StatusOK {
			t.Error(resp, err)
		}
	}
	e.until(t, dir, 1)
	visitors[0].mustCall("exec", string(run("cat /tmp/mark")), `"0\n"`)
	for range 3 {
		visit(s, true).mustCall("exec", string(run("echo ran")), "ran")
	}
	if ids := e.containers(t, dir); len(ids) != 2 {
		t.Errorf("a session and requests without one have %d containers: %v", len(ids), ids)
	}
	s.cmd.Process.Signal(syscall.SIGTERM)
	if code := s.end(); code != 0 {
		t.Errorf("exit code %d: %s", code, s.stderr.String())
	}
	e.none(t, dir)
}

// TestInContainerPlainUser: who may only speak with the daemon runs commands as
// who he is, and files belong to him.
func TestInContainerPlainUser(t *testing.T) {
	t.Parallel()
	e := needEngine(t, "docker")
	d, err := theDaemon()
	if err != nil || d.host == "" {
		t.Skip("the group of a daemon that others use is left alone")
	}
	const user, group = 1234, 4321
	socket := strings.TrimPrefix(d.host, "unix://")
	home, err := os.MkdirTemp("", "perstack-base-user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	dir, server := filepath.Join(home, "project"), filepath.Join(home, "perstack-base")
	data, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{os.Chmod(filepath.Dir(socket), 0o711), os.Chown(socket, 0, group), os.Chmod(socket, 0o660),
		os.Mkdir(dir, 0o755), os.WriteFile(server, data, 0o755), os.Chown(home, user, user), os.Chown(dir, user, user)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	e.need(t, busyboxImage)
	begin := func(groups ...uint32) *client {
		cmd := exec.Command(server, e.flags(busyboxImage)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME="+filepath.Join(home, "cache"), "DOCKER_CONFIG="+filepath.Join(home, "docker"))
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user, Groups: groups}}
		c := startCommand(t, cmd)
		c.initialize()
		return c
	}
	t.Run("in the group", func(t *testing.T) {
		c := begin(group)
		if got, want := c.said("id -u; id -g; grep CapEff /proc/self/status"), fmt.Sprintf("%d\n%[1]d\nCapEff:\t0000000000000000", user); got != want {
			t.Errorf("commands run as %q, want %q", got, want)
		}
		c.said("echo x > $TMPDIR/a && echo x > ~/a && echo x > /tmp/a && echo mine > file && mkdir made")
		if info, err := os.Stat(filepath.Join(dir, "file")); err != nil || info.Sys().(*syscall.Stat_t).Uid != user {
			t.Errorf("the file is of somebody else: %v (%v)", info, err)
		}
		c.in.Close()
		if code := c.end(); code != 0 {
			t.Errorf("exit code %d: %s", code, c.stderr.String())
		}
		e.none(t, dir)
	})
	t.Run("without the group", func(t *testing.T) {
		result, err := begin().call("exec", run("true"))
		if err != nil || !result.IsError || !strings.Contains(text(t, result), `"code":"unavailable"`) || !strings.Contains(text(t, result), "usermod -aG docker") {
			t.Errorf("without the right to speak with the daemon: %s (%v)", text(t, result), err)
		}
	})
}

// TestInContainerSkillrun talks with the example: containers change nothing of it.
func TestInContainerSkillrun(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e *engine) {
		e.need(t, busyboxImage)
		saidAll(t, skillrun(t, shellSkills, "-executor", "container", "-image", busyboxImage, "-engine", e.path),
			append(shellAnswers, "in a container of "+busyboxImage)...)
	})
}
