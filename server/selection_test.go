package server

import (
	"context"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/tools"
)

func fakeTool(name string) *tools.Tool {
	type nothing struct{}
	return tools.Define(tools.Info{Name: name, Title: name, Description: "A tool.", Effect: tools.Reads, NoOutputSchema: true},
		func(context.Context, *tools.Env, nothing) (string, error) { return "", nil })
}

func TestSelection(t *testing.T) {
	one := &tools.Profile{Name: "one", Tools: []*tools.Tool{fakeTool("read"), fakeTool("exec")}}
	two := &tools.Profile{Name: "two", Tools: []*tools.Tool{fakeTool("exec"), fakeTool("write")}}
	for _, c := range []struct{ list, want, err string }{
		{"", "one.exec one.read", ""},
		{"one", "one.exec one.read", ""},
		{" one , ", "one.exec one.read", ""},
		{"one.read", "one.read", ""},
		{"one,-one.read", "one.exec", ""},
		{"-one.read", "one.exec", ""},
		{"one,one.read,one", "one.exec one.read", ""},
		{"one,-one.read,one.read", "one.exec one.read", ""},
		{"one,two,-two.exec", "one.exec one.read two.write", ""},
		{"one,two.write", "one.exec one.read two.write", ""},
		{"one,two", "", "one.exec and two.exec have the same name; leave one out, for example with --tools one,two,-two.exec"},
		{"all", "one.exec one.read two.write", ""},
		{"all,-one.exec", "two.exec one.read two.write", ""},
		{"all,two.exec", "two.exec one.read two.write", ""},
		{"two,all", "two.exec one.read two.write", ""},
		{"all,one.exec,two.exec", "", "one.exec and two.exec have the same name"},
		{"all,-all", "", "selects no tool"},
		{"three", "", `--tools three: there is no profile "three"; profiles are one, two, and all means every one`},
		{"onne", "", `there is no profile "onne" (did you mean "one"?); profiles are one, two`},
		{"exec", "", "--tools exec: a tool is named with its profile: one.exec or two.exec"},
		{"one.exce", "", `profile one has no tool "exce" (did you mean "exec"?); its tools are exec, read`},
		{"one.write", "", `--tools one.write: profile one has no tool "write"; its tools are exec, read`},
		{"-one.write", "", `profile one has no tool "write"`},
		{"one,-one", "", "--tools one,-one selects no tool"},
	} {
		chosen, err := selectTools([]*tools.Profile{one, two}, []string{"one"}, strings.Split(c.list, ","))
		var names []string
		for _, s := range chosen {
			names = append(names, s.name())
		}
		switch {
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%q: got error %v, want %s", c.list, err, c.err)
		case c.err == "" && (err != nil || strings.Join(names, " ") != c.want):
			t.Errorf("%q: got %v (%v), want %s", c.list, names, err, c.want)
		}
	}
}

func TestUnknownTool(t *testing.T) {
	s := newServer(t, Config{Workspace: t.TempDir(), Tools: []string{"perstack", "-perstack.todo"}, ReadOnly: true})
	for name, want := range map[string]string{
		"readTextfile": `Unknown tool "readTextfile". Did you mean "readTextFile"? Tools: attemptCompletion, clearTodo, readImageFile, readPdfFile, readTextFile.`,
		"nonsense":     `Unknown tool "nonsense". Tools: `,
		"foo":          `Unknown tool "foo". Tools: `,
		"todo":         `It exists as perstack.todo but is not selected; start the server with --tools perstack.todo to have it.`,
		"exec":         `It is left out because this server is read-only (--read-only).`,
	} {
		if got := s.lists.unknownTool(name); !strings.Contains(got, want) {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

// TestReadOnlyLeavesOut holds the whole list that --read-only keeps.
func TestReadOnlyLeavesOut(t *testing.T) {
	for _, p := range Profiles {
		for _, tool := range p.Tools {
			e := tool.Effect
			if e.AllowedReadOnly() != (!e.OfCommands && (e.ReadOnly || e.KeepsFiles)) || (e.ReadOnly && e.OpenWorld) {
				t.Errorf("%s.%s: %+v", p.Name, tool.Name, e)
			}
		}
	}
	s := newServer(t, Config{Workspace: t.TempDir(), ReadOnly: true})
	for _, l := range s.Listed() {
		switch l.Tool.Name {
		case "exec", "writeTextFile", "editTextFile":
			t.Errorf("--read-only lists %s", l.Tool.Name)
		}
	}
	for _, none := range []string{"perstack.exec", "terminal"} {
		if _, err := New(Config{Workspace: t.TempDir(), ReadOnly: true, Tools: []string{none}}); err == nil {
			t.Errorf("%s: a server without any tool must not start", none)
		}
	}
}

func TestInstructions(t *testing.T) {
	s := newServer(t, Config{Workspace: t.TempDir()})
	text := s.instructions(Config{})
	if !strings.HasPrefix(text, "Paths are relative to the workspace") || !strings.Contains(text, "attemptCompletion") || len([]rune(text)) > maxInstructions {
		t.Error(text)
	}
	if text = s.instructions(Config{ReadOnly: true}); !strings.Contains(text, "read-only") {
		t.Error(text)
	}
}
