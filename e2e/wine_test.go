//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A wine is a Windows in a directory, the Windows binary and a program for it to run.
type wine struct {
	prefix, server, helper string
}

// theWine is made by the first test that needs it.
var theWine = sync.OnceValues(newWine)

// needWine returns it, or skips the test with the line that brings it about.
func needWine(t *testing.T) *wine {
	t.Helper()
	if os.Getenv("PERSTACK_BASE_WINE") == "" {
		t.Skip("takes half a minute; set PERSTACK_BASE_WINE=1")
	}
	if _, err := exec.LookPath("wine"); err != nil {
		t.Skip("needs Wine: apt-get install --no-install-recommends wine wine64")
	}
	w, err := theWine()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func newWine() (*wine, error) {
	dir := filepath.Dir(binary) // removed after the tests
	w := &wine{prefix: filepath.Join(dir, "wine"), server: filepath.Join(dir, "perstack-base.exe"), helper: filepath.Join(dir, "helper.exe")}
	for out, source := range map[string]string{w.server: "../cmd/perstack-base", w.helper: "./winehelper"} {
		build := exec.Command("go", "build", "-trimpath", "-o", out, source)
		build.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
		if _, err := output(build); err != nil {
			return nil, err
		}
	}
	atEnd(func() { _, _ = output(w.command("wineserver", "--kill")) })
	if _, err := output(w.command("wine", "wineboot", "--init")); err != nil {
		return nil, err
	}
	return w, os.WriteFile(filepath.Join(w.prefix, "drive_c/windows/system32/bcryptprimitives.dll"), forwarder("bcryptprimitives.dll", "ProcessPrng", "advapi32.SystemFunction036"), 0o644)
}

// command is a call of a program of Wine.
func (w *wine) command(args ...string) *exec.Cmd {
	path, err := exec.LookPath(args[0])
	if err != nil {
		path = filepath.Join("/usr/lib/wine", args[0])
	}
	cmd := exec.Command(path, args[1:]...)
	cmd.Env = append(os.Environ(), "WINEPREFIX="+w.prefix, "WINEDEBUG=-all", "WINEDLLOVERRIDES=mscoree,mshtml=")
	return cmd
}

// serve starts the Windows binary in a new workspace, which is on drive Z.
func (w *wine) serve(t *testing.T, args ...string) (c *client, dir, drive string) {
	t.Helper()
	dir = workspace(t)
	cmd := w.command(append([]string{"wine", w.server, "serve"}, args...)...)
	cmd.Dir = dir
	c = startCommand(t, cmd)
	c.initialize()
	return c, dir, "Z:" + strings.ReplaceAll(dir, "/", `\`)
}

// answers calls tools one after the other and compares what they say.
func answers(t *testing.T, c *client, calls [][3]string) {
	t.Helper()
	for _, call := range calls {
		result, err := c.call(call[0], json.RawMessage(call[1]))
		if err != nil || !strings.Contains(text(t, result), call[2]) {
			t.Errorf("%s %s answered %s (%v), not %s", call[0], call[1], text(t, result), err, call[2])
		}
	}
}

// quoted is a text in JSON, without the quotes.
func quoted(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw[1 : len(raw)-1])
}

// TestWineFiles: the file tools work with drive letters and both separators, keep CRLF, and leave the workspace by none of
// the names that only Windows has.
func TestWineFiles(t *testing.T) {
	c, dir, drive := needWine(t).serve(t, "--tools", "perstack,baseagent")
	if err := os.WriteFile(filepath.Join(dir, "crlf.txt"), []byte("one\r\ntwo\r\nthree\r\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(filepath.Dir(dir), "outside.txt")
	if err := os.WriteFile(outside, []byte("outside"), 0o644); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(outside)
	in := func(path string) string { return quoted(drive + `\` + path) }
	answers(t, c, [][3]string{
		{"writeTextFile", `{"path":"sub/a.txt","text":"one\n"}`, `"path":"` + in(`sub\a.txt`) + `"`},
		{"readTextFile", `{"path":"` + in(`sub\a.txt`) + `"}`, `"content":"one\n"`},
		{"readTextFile", `{"path":"sub\\a.txt"}`, `"content":"one\n"`},
		{"readTextFile", `{"path":"` + strings.ToLower(in("crlf.txt")[:1]) + in("crlf.txt")[1:] + `"}`, `"content":"one\r\ntwo`},
		{"editTextFile", `{"path":"crlf.txt","oldText":"two","newText":"2"}`, `"newText":"2"`},
		{"apply_patch", `{"patch":"*** Begin Patch\n*** Update File: crlf.txt\n@@\n 2\n-three\n+3\n+four\n*** End Patch"}`, "Success"},
		{"grep_files", `{"pattern":"four"}`, "crlf.txt"},
		{"list_dir", `{"dir_path":"."}`, "sub"},
	})
	if data, err := os.ReadFile(filepath.Join(dir, "crlf.txt")); err != nil || string(data) != "one\r\n2\r\n3\r\nfour\r\n" {
		t.Errorf("the file holds %q (%v)", data, err)
	}
	for _, path := range []string{`C:\windows\win.ini`, `C:crlf.txt`, `..\outside.txt`, `sub\..\..\outside.txt`, `\\?\` + drive + `\..\outside.txt`, `\\localhost\c$\windows\win.ini`, `NUL`, `sub\CON`, `COM1.txt`, `crlf.txt:stream`, `\windows\win.ini`} {
		for tool, args := range map[string]string{"readTextFile": `{"path":"%s"}`, "writeTextFile": `{"path":"%s","text":"x"}`} {
			result, err := c.call(tool, json.RawMessage(fmt.Sprintf(args, quoted(path))))
			if err != nil || !result.IsError {
				t.Errorf("%s of %s: %v %v", tool, path, result, err)
			}
		}
	}
	if data, err := os.ReadFile(outside); err != nil || string(data) != "outside" {
		t.Errorf("outside of the workspace: %q %v", data, err)
	}
}

// TestWineExec: programs are found as Windows finds them, and started with arguments and variables as they were given.
func TestWineExec(t *testing.T) {
	w := needWine(t)
	c, dir, drive := w.serve(t)
	data, err := os.ReadFile(w.helper)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "helper.exe"), data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	exec := func(command, args, extra string) string {
		return `{"command":"` + quoted(command) + `","args":` + args + `,"env":{"given":"by env"},"cwd":"","stdout":true,"stderr":true` + extra + `}`
	}
	answers(t, c, [][3]string{
		{"exec", exec(`.\helper`, `["say","a \"b\" c\\","0"]`, ""), quoted(`a "b" c\ by env`)},
		{"exec", exec(drive+`\helper.exe`, `["say","hello","3"]`, ""), `exit code 3`},
		{"exec", exec("cmd", `["/c","cd"]`, ""), quoted(drive)},
		{"exec", exec("CMD.EXE", `["/c","echo %given%"]`, ""), "by env"},
		{"exec", exec("cmd", `["/c","echo %SECRET_TOKEN%"]`, ""), "%SECRET_TOKEN%"},
		{"exec", exec("nothing-of-this-name", `[]`, ""), `was not found`},
		{"exec", exec(`.\notes.txt`, `[]`, ""), `is not executable`},
	})
}

// beats is how often the processes of a chain have said that they are there; -1 while one of them has not.
func beats(dir string, chain int) (sum int64) {
	for i := 1; i <= chain; i++ {
		info, err := os.Stat(filepath.Join(dir, fmt.Sprint("beat", i)))
		if err != nil || info.Size() == 0 {
			return -1
		}
		sum += info.Size()
	}
	return sum
}

// living waits until every process of a chain has said that it is there, and more than once.
func living(t *testing.T, dir string, chain int) {
	t.Helper()
	first := int64(-1)
	for deadline := time.Now().Add(hangGuard); ; time.Sleep(20 * time.Millisecond) {
		now := beats(dir, chain)
		if first < 0 {
			first = now
		} else if now > first {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the processes do not run")
		}
	}
}

// dead waits until no process of a chain says anything any more, for a hundred times of their pause.
func dead(t *testing.T, dir string, chain int) {
	t.Helper()
	for deadline := time.Now().Add(hangGuard); ; {
		before := beats(dir, chain)
		time.Sleep(time.Second)
		if beats(dir, chain) == before {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("processes of the command live on")
		}
	}
}

// TestWineKill: whatever a command started ends with it, and with the server, detached processes included.
func TestWineKill(t *testing.T) {
	w := needWine(t)
	const chain = 3
	start := func(t *testing.T, way, extra string) (c *client, dir string, answer chan message, id string) {
		c, dir, _ = w.serve(t)
		args := fmt.Sprintf(`{"command":"%s","args":["%s","%d","beat"],"env":{},"cwd":"","stdout":true,"stderr":true%s}`, quoted("Z:"+w.helper), way, chain, extra)
		id, answer = c.send("tools/call", callParams("exec", json.RawMessage(args)))
		return c, dir, answer, id
	}
	t.Run("timeout", func(t *testing.T) {
		c, dir, answer, _ := start(t, "stay", `,"timeout":8000`)
		living(t, dir, chain)
		if m := c.wait(answer); !strings.Contains(string(m.Result), "timed out") {
			t.Errorf("the answer is %s", m.Result)
		}
		dead(t, dir, chain)
	})
	t.Run("cancelled", func(t *testing.T) {
		c, dir, _, id := start(t, "stay", "")
		living(t, dir, chain)
		c.notify("notifications/cancelled", map[string]any{"requestId": json.RawMessage(id)})
		dead(t, dir, chain)
	})
	t.Run("left behind", func(t *testing.T) {
		c, dir, answer, _ := start(t, "leave", "")
		c.wait(answer)
		living(t, dir, chain) // until the session ends
		c.in.Close()
		if code := c.end(); code != 0 {
			t.Errorf("exit code %d: %s", code, c.stderr.String())
		}
		dead(t, dir, chain)
	})
	t.Run("server killed", func(t *testing.T) {
		c, dir, _, _ := start(t, "stay", "")
		living(t, dir, chain)
		c.kill()
		dead(t, dir, chain)
	})
}
