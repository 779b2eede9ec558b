package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perstack-ai/perstack-base/server"
)

// everyCommand calls visit for each command that --help can name.
func everyCommand(visit func(*cobra.Command)) {
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.InitDefaultHelpFlag()
		visit(cmd)
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	root := rootCommand()
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	walk(root)
}

func helpOf(cmd *cobra.Command) string {
	var b bytes.Buffer
	cmd.SetOut(&b)
	help(cmd, nil)
	return b.String()
}

// TestHelpFits: every line of every help text fits a terminal.
func TestHelpFits(t *testing.T) {
	commands := 0
	everyCommand(func(cmd *cobra.Command) {
		commands++
		for line := range strings.Lines(helpOf(cmd)) {
			line = strings.TrimSuffix(line, "\n")
			if n := utf8.RuneCountInString(line); n > helpWidth {
				t.Errorf("%s --help has a line of %d columns: %s", cmd.CommandPath(), n, line)
			}
			if strings.TrimRight(line, " ") != line {
				t.Errorf("%s --help has blanks at the end of a line: %q", cmd.CommandPath(), line)
			}
		}
	})
	if commands < 12 {
		t.Errorf("only %d commands were looked at", commands)
	}
}

// TestSharedFlagsStandOnce: the flags that all commands share are in the help of
// the program, once each, and in no other; that of a subcommand says where.
func TestSharedFlagsStandOnce(t *testing.T) {
	everyCommand(func(cmd *cobra.Command) {
		text := helpOf(cmd)
		if cmd.HasParent() && !strings.Contains(text, "perstack-base --help") {
			t.Errorf("%s --help does not say where the shared flags are", cmd.CommandPath())
		}
		cmd.Root().PersistentFlags().VisitAll(func(f *pflag.Flag) {
			want := 1
			if cmd.HasParent() {
				want = 0
			}
			if n := strings.Count(text, "\n  --"+f.Name+" "); n != want {
				t.Errorf("%s --help describes --%s %d times, not %d", cmd.CommandPath(), f.Name, n, want)
			}
		})
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(text, "--"+f.Name) {
				t.Errorf("%s --help lacks its own flag --%s", cmd.CommandPath(), f.Name)
			}
		})
	})
}

func TestWrap(t *testing.T) {
	if got := wrap("one two  three four", 8, "> "); got != "one two\n> three\n> four" {
		t.Errorf("got %q", got)
	}
}

// TestSamples: an example can be shown for each tool, and has what it requires.
func TestSamples(t *testing.T) {
	s, err := server.New(server.Config{Workspace: t.TempDir(), Tools: []string{"all"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, l := range s.Listed() {
		text := usageOf(l.Tool)
		for _, a := range server.Arguments(l.Tool) {
			if a.Required && obvious[a.Name] == nil && samples[a.Name] == "" {
				t.Errorf("%s: there is no sample value for %s", l.Tool.Name, a.Name)
			}
			if a.Required && obvious[a.Name] == nil && !strings.Contains(text, " "+a.Name+"=") {
				t.Errorf("the example lacks %s: %s", a.Name, text)
			}
		}
	}
}

// TestToolsFit: the list of all tools fits a terminal, too.
func TestToolsFit(t *testing.T) {
	for _, selection := range []string{"all", "perstack.todo"} {
		s, err := server.New(server.Config{Workspace: t.TempDir(), Tools: []string{selection}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var b bytes.Buffer
		printTools(&b, s)
		for line := range strings.Lines(b.String()) {
			if line = strings.TrimSuffix(line, "\n"); utf8.RuneCountInString(line) > helpWidth || strings.TrimRight(line, " ") != line {
				t.Errorf("--tools %s: a line of %d columns: %q", selection, utf8.RuneCountInString(line), line)
			}
		}
	}
}

func TestReadArguments(t *testing.T) {
	s, err := server.New(server.Config{Workspace: t.TempDir(), Tools: []string{"all"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, c := range []struct {
		tool, words, want string
	}{
		{"exec", "ls", `{"args":[],"command":"ls","cwd":"","env":{},"stderr":true,"stdout":true}`},
		{"exec", `command=ls|args=["-l"]|stderr=false`, `{"args":["-l"],"command":"ls","cwd":"","env":{},"stderr":false,"stdout":true}`},
		{"exec", `{"command":"ls","cwd":"a"}`, `{"args":[],"command":"ls","cwd":"a","env":{},"stderr":true,"stdout":true}`},
		{"shell_command", "make X=1 | tail", `{"command":"make X=1 | tail"}`},
		{"shell_command", "ls|workdir=src", `{"command":"ls","workdir":"src"}`},
		{"readTextFile", "a b.txt", `{"path":"a b.txt"}`},
		{"readTextFile", "7", `{"path":"7"}`},
		{"readTextFile", "path=7|to=7", `{"path":"7","to":7}`},
		{"update_plan", "[]", `{"steps":[]}`},
		{"writeTextFile", "text=x\ny|path=a", `{"path":"a","text":"x\ny"}`},
		{"writeTextFile", "a", `"a" is neither a JSON object nor key=value`},
		{"writeTextFile", "path=a|b", `{"path":"a","text":"b"}`},
		{"exec", "ls|-l", `"ls" is neither a JSON object nor key=value`},
		{"todo", "x", `"x" is neither a JSON object nor key=value`},
		{"todo", "{x}", `the arguments are not a JSON object: invalid character 'x' looking for beginning of object key string`},
	} {
		tool, err := s.Tool(c.tool)
		if err != nil {
			t.Fatal(err)
		}
		got, err := readArguments(tool, splitWords(c.words))
		var text bytes.Buffer
		if err != nil {
			text.WriteString(err.Error())
		} else if err := printLine(&text, got); err != nil {
			t.Fatal(err)
		}
		if strings.TrimSpace(text.String()) != c.want {
			t.Errorf("%s %s: %s", c.tool, c.words, text.String())
		}
	}
}

// splitWords cuts at | without blanks around it.
func splitWords(text string) []string {
	words := strings.Split(strings.ReplaceAll(text, " | ", "\x00"), "|")
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], "\x00", " | ")
	}
	return words
}

// TestFlagDefaults: what --help and README say holds without a flag does hold.
func TestFlagDefaults(t *testing.T) {
	root, o := &pflag.FlagSet{}, &options{}
	o.register(root)
	if o.web.listen != defaultListen || o.web.transport != "stdio" || o.sandbox != "auto" || o.cfg.Network.String() != "deny" || o.logLevel != "warn" {
		t.Errorf("got %+v", o)
	}
	root.VisitAll(func(f *pflag.Flag) {
		if f.Value.String() != f.DefValue {
			t.Errorf("--%s is %q and says %q", f.Name, f.Value, f.DefValue)
		}
	})
}
