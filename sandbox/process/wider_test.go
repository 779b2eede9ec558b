package process

import (
	"os"
	"path/filepath"
	"testing"
)

// TestCommandsWithRightsOfTheirOwn: what one command may reach besides, no other
// command of the session may, however many such rights there are.
func TestCommandsWithRightsOfTheirOwn(t *testing.T) {
	commands, err := NewCommands(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer commands.Close()
	if ok, why := commands.Confined(); !ok {
		t.Skip("commands are not confined here: ", why)
	}
	shell := commands.NewShell()
	defer shell.Close()
	for i := range maxWider + 2 {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		cat, echo := `cat "$1/f"`, `echo > "$1/g"`
		for _, c := range []struct {
			read, write []string
			line        string
			ok          bool
		}{
			{nil, nil, cat, false}, {nil, nil, echo, false},
			{[]string{dir}, nil, cat, true}, {[]string{dir}, nil, echo, false},
			{nil, []string{dir}, cat, true}, {nil, []string{dir}, echo, true},
			{nil, nil, cat, false},
		} {
			r, err := shell.Run(t.Context(), Command{Name: "sh", Args: []string{"-c", c.line, "sh", dir}, Read: c.read, Write: c.write})
			if err != nil || (r.ExitCode == 0) != c.ok {
				t.Errorf("%d: read %v, write %v, %s: code %d, %v", i, c.read, c.write, c.line, r.ExitCode, err)
			}
		}
	}
}
