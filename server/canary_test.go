package server

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const canary = "CANARYd41d8"

// filled are arguments of a tool in which every text is the given one.
func filled(t *testing.T, schema []byte, text string) string {
	t.Helper()
	var s struct {
		Properties map[string]struct {
			Type  any
			Enum  []any
			Items struct{ Type string }
		}
		Required []string
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		t.Fatal(err)
	}
	args := map[string]any{}
	for name, p := range s.Properties {
		switch {
		case p.Type == "string":
			args[name] = text
		case p.Type == "array" && p.Items.Type == "string":
			args[name] = []string{text}
		case p.Type == "array":
			args[name] = []any{map[string]any{"from": "host:///" + text, "to": text, "title": text, "description": text, "status": text}}
		case p.Type == "object":
			args[name] = map[string]any{text: text}
		case p.Type == "boolean":
			args[name] = true
		}
		optional := !strings.Contains(" "+strings.Join(s.Required, " ")+" ", " "+name+" ")
		if optional && (p.Type == "object" || p.Type == "array") {
			delete(args, name)
		}
	}
	out, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestLogsHoldNoArguments calls every tool with a canary in every argument, in
// ways that fail in as many places as can be, and reads the log.
func TestLogsHoldNoArguments(t *testing.T) {
	for _, choice := range [][]string{{"perstack", "baseagent", "skills", "echo"}, {"vski"}} {
		dir := workspace(t)
		put(t, dir, map[string]string{canary + "/f.txt": "x", "file" + canary: canary, "skills/s/SKILL.md": "---\nname: s\ndescription: d\n---\n"})
		if err := os.Symlink("loop"+canary, filepath.Join(dir, "loop"+canary)); err != nil {
			t.Skip(err)
		}
		var log logBuffer
		s := newServer(t, Config{Workspace: dir, Tools: choice, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		call := inProcess(t, s)
		calls := 0
		for _, c := range s.lists.chosen() {
			schema := c.bound().Tool.RawInputSchema
			for _, text := range []string{
				canary, "../" + canary, "file" + canary + "/x", "loop" + canary, canary + "\x00", strings.Repeat(canary, 500), "/" + canary, canary + "/f.txt", dir + "/" + canary,
				"*** Begin Patch\n*** Delete File: " + canary + "\n*** End Patch", "s", "[", "exit 3 #" + canary, "./" + canary,
			} {
				mustCall(t, call, c.tool.Name, filled(t, schema, text))
				calls++
			}
			mustCall(t, call, c.tool.Name, `{"`+canary+`":"`+canary+`"}`)
		}
		if got := log.String(); strings.Contains(got, canary) || strings.Count(got, "msg=call") < calls {
			for line := range strings.Lines(got) {
				if strings.Contains(line, canary) {
					t.Error(line)
				}
			}
			t.Errorf("%v: %d lines for %d calls", choice, strings.Count(got, "msg=call"), calls)
		}
	}
}

// TestLogOfAnUnforeseenError: an error that no tool has words for is logged by its
// kind. A script that is its own interpreter is such a case.
func TestLogOfAnUnforeseenError(t *testing.T) {
	dir := workspace(t)
	put(t, dir, map[string]string{"skills/s/SKILL.md": "---\nname: s\ndescription: d\n---\n", canary + ".sh": "#!" + dir + "/" + canary + ".sh\n"})
	var log logBuffer
	s := newServer(t, Config{Workspace: dir, Tools: []string{"perstack"}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	args := `{"command":"` + dir + "/" + canary + `.sh","args":["` + canary + `"],"env":{},"cwd":"","stdout":true,"stderr":true}`
	if r := mustCall(t, inProcess(t, s), "exec", args); !r.IsError {
		t.Fatal(texts(r))
	}
	if got := log.String(); strings.Contains(got, canary) || !strings.Contains(got, "a call failed") || !strings.Contains(got, syscall.ELOOP.Error()) {
		t.Error(got)
	}
}
