package baseagent_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/server"
)

func TestMain(m *testing.M) {
	process.Helpers()
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "caches-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		os.Setenv("XDG_CACHE_HOME", dir) // nobody's own caches are touched
		return m.Run()
	}())
}

// world is a server over a directory of its own.
type world struct {
	testing.TB
	dir    string
	server *server.Server
}

func newWorld(t testing.TB) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Config{Workspace: dir, Tools: []string{"baseagent"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &world{TB: t, dir: dir, server: s}
}

func (w *world) call(tool string, args map[string]any) (text string, failed bool) {
	w.Helper()
	r, err := w.server.Call(context.Background(), tool, args)
	if err != nil {
		w.Fatal(err)
	}
	if r.RawStructuredContent != nil || r.StructuredContent != nil {
		w.Errorf("%s: structured content", tool)
	}
	text = r.Content[0].(mcp.TextContent).Text
	if text == "" || strings.HasSuffix(text, "\n") {
		w.Errorf("%s: the text is empty or ends with a line feed: %q", tool, text)
	}
	return text, r.IsError
}

func (w *world) write(name string, data string) {
	w.Helper()
	full := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o777); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(data), 0o666); err != nil {
		w.Fatal(err)
	}
}

func (w *world) files() map[string]string {
	w.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(w.dir, func(p string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		name, _ := filepath.Rel(w.dir, p)
		found[filepath.ToSlash(name)] = string(data)
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	return found
}

// The example of the wire: 1,500 lines are cut to 714 and 714.
func TestMiddleOut(t *testing.T) {
	w := newWorld(t)
	want := func(n int) string {
		return "x00714\n\n[...truncated...] " + fmt.Sprint(n) + " tokens left out here; send the output to a file and read parts of it\n\nx00787\n"
	}
	text, failed := w.call("shell_command", map[string]any{"command": `printf 'x%05d\n' $(seq 1 1500)`})
	if failed || !strings.Contains(text, want(127)) || !strings.HasPrefix(text, "x00001\n") || !strings.HasSuffix(text, "\nx01500") {
		t.Errorf("%.40s ... %s", text, text[len(text)-40:])
	}
	// What is kept in bounded memory is cut as if all of it had been kept.
	for _, n := range []int{3000, 20000, 200000} {
		lines := make([]string, n)
		for i := range lines {
			lines[i] = fmt.Sprintf("%07d", i+1)
		}
		whole := strings.Join(lines, "\n") + "\n[exit code: 3]"
		text, failed := w.call("shell_command", map[string]any{"command": fmt.Sprintf(`seq -f %%07.0f 1 %d; printf '\n\n\r\n' >&2; exit 3`, n)})
		head, rest, _ := strings.Cut(text, "\n\n[...truncated...] ")
		marker, tail, _ := strings.Cut(rest, "\n\n")
		left := len(whole) - len(head) - len(tail)
		if !failed || !strings.HasPrefix(whole, head) || !strings.HasSuffix(whole, tail) || len(head)+len(tail) > 10000 || len(head)+len(tail) < 9900 ||
			!strings.HasPrefix(marker, fmt.Sprintf("%d tokens", (left+3)/4)) {
			t.Errorf("%d lines: head %d, tail %d, %s", n, len(head), len(tail), marker)
		}
	}
}

// BASH_ENV of the server would be a rc file.
func TestShellReadsNoFiles(t *testing.T) {
	rc := filepath.Join(t.TempDir(), "rc")
	if err := os.WriteFile(rc, []byte("echo read\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BASH_ENV", rc)
	if text, _ := newWorld(t).call("shell_command", map[string]any{"command": "echo [$BASH_ENV]"}); text != "[]" {
		t.Error(text)
	}
}

func TestWithoutBash(t *testing.T) {
	bin := t.TempDir()
	if err := os.Symlink("/bin/sh", filepath.Join(bin, "sh")); err != nil {
		t.Skip(err)
	}
	t.Setenv("PATH", bin)
	if text, failed := newWorld(t).call("shell_command", map[string]any{"command": "echo $0"}); failed || text != "sh" {
		t.Error(text)
	}
}

// content is the text of a file, or {"b64": ...} for bytes that are no UTF-8.
type content string

func (c *content) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*c = content(text)
		return nil
	}
	var coded struct{ B64 []byte }
	err := json.Unmarshal(data, &coded)
	*c = content(coded.B64)
	return err
}

// TestPatchCases runs every case of the data file through the tool, onto the disk.
func TestPatchCases(t *testing.T) {
	data, err := os.ReadFile("../../testdata/apply_patch_cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name            string
		Input, Expected map[string]content
		Patch           string
		ExpectError     bool `json:"expect_error"`
	}
	if err := json.Unmarshal(data, &cases); err != nil || len(cases) < 60 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			w := newWorld(t)
			for name, data := range c.Input {
				w.write(name, string(data))
			}
			text, failed := w.call("apply_patch", map[string]any{"patch": c.Patch})
			want := map[string]string{}
			for name, data := range c.Expected {
				want[name] = string(data)
			}
			if got := w.files(); failed != c.ExpectError || !maps.Equal(got, want) {
				t.Errorf("%s\ngot %q\nwant %q", text, got, want)
			}
			if prefix := map[bool]string{true: "Error: ", false: "Success. Updated"}[failed]; !strings.HasPrefix(text, prefix) {
				t.Error(text)
			}
		})
	}
}

// Sections compose, make room for each other, and keep modes and links.
func TestPatchOnDisk(t *testing.T) {
	w := newWorld(t)
	w.write("a", "a\n")
	w.write("run.sh", "1\n")
	w.write("real/f", "f\n")
	for name, mode := range map[string]os.FileMode{"run.sh": 0o750, "a": 0o600} {
		if err := os.Chmod(filepath.Join(w.dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"link": "real/f", "dir": "real"} {
		if err := os.Symlink(to, filepath.Join(w.dir, name)); err != nil {
			t.Skip(err)
		}
	}
	patch := "*** Begin Patch\n*** Delete File: a\n*** Add File: a/b\n+x\n*** Update File: a/b\n*** Move to: a/c/d\n-x\n+y\n" +
		"*** Update File: run.sh\n*** Move to: bin/run\n-1\n+2\n*** Update File: link\n-f\n+g\n*** Delete File: dir\n*** Add File: dir/own\n+z\n*** End Patch"
	if text, failed := w.call("apply_patch", map[string]any{"patch": patch}); failed {
		t.Fatal(text)
	}
	want := map[string]string{"a/c/d": "y\n", "bin/run": "2\n", "real/f": "g\n", "link": "g\n", "dir/own": "z\n"}
	if got := w.files(); !maps.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if info, _ := os.Stat(filepath.Join(w.dir, "bin/run")); info.Mode().Perm() != 0o750 {
		t.Error(info.Mode())
	}
	if info, _ := os.Lstat(filepath.Join(w.dir, "link")); info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link is gone")
	}
}

// An error that the disk gives at the end names the path as the patch spells it,
// and nothing has happened.
func TestPatchThatTheDiskRefuses(t *testing.T) {
	w := newWorld(t)
	w.write("a", "a\n")
	long := strings.Repeat("x", 300)
	patch := "*** Begin Patch\n*** Delete File: a\n*** Add File: new/y\n+y\n*** Add File: ./a/../a/" + long + "\n+x\n*** End Patch"
	text, failed := w.call("apply_patch", map[string]any{"patch": patch})
	if !failed || text != "Error: ./a/../a/"+long+" is too long." {
		t.Error(text)
	}
	if got := w.files(); !maps.Equal(got, map[string]string{"a": "a\n"}) {
		t.Errorf("got %q", got)
	}
	if _, err := os.Lstat(filepath.Join(w.dir, "new")); err == nil {
		t.Error("a directory was left over")
	}
}

// Names on the disk are anything; in answers they are lines.
func TestNames(t *testing.T) {
	w := newWorld(t)
	w.write("a\nb\xff", "needle \xff\n")
	for tool, args := range map[string]map[string]any{
		"list_dir": {"dir_path": "."}, "grep_files": {"pattern": "needle", "output_mode": "content"},
	} {
		if text, _ := w.call(tool, args); !strings.Contains(text, `a\x0ab\xff`) {
			t.Errorf("%s: %q", tool, text)
		}
	}
}

func TestImageIsTheFile(t *testing.T) {
	w := newWorld(t)
	pixel, _ := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAIAAAADCAIAAAA2iEnWAAAAEElEQVR42mNQaPgPRAwoFABg/Am7rnvpsgAAAABJRU5ErkJggg==")
	w.write("p.png", string(pixel))
	r, err := w.server.Call(t.Context(), "view_image", map[string]any{"path": "p.png"})
	if err != nil || len(r.Content) != 2 {
		t.Fatal(r, err)
	}
	image := r.Content[1].(mcp.ImageContent)
	if got, _ := base64.StdEncoding.DecodeString(image.Data); string(got) != string(pixel) || image.MIMEType != "image/png" {
		t.Errorf("%s, %d bytes", image.MIMEType, len(got))
	}
}
