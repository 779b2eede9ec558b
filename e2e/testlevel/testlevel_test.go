package testlevel

import (
	"flag"
	"testing"
)

// given has flags of go test be something else for the time of a test.
func given(t *testing.T, flags map[string]string) {
	t.Helper()
	for name, value := range flags {
		f := flag.Lookup(name)
		if f == nil {
			t.Fatalf("go test has no flag %s", name)
		}
		was := f.Value.String()
		set(name, value)
		t.Cleanup(func() { set(name, was) })
	}
}

func TestLevels(t *testing.T) {
	for _, tt := range []struct {
		name       string
		short, run string
		all        string
		wantQuick  bool
		wantAll    bool
	}{
		{"go test", "false", "", "", false, false},
		{"go test -short", "true", "", "", true, false},
		{"go test -run", "false", "TestX", "", false, true},
		{"go test -short -run", "true", "TestX", "", false, false},
		{"everything", "false", "", "1", false, true},
		{"everything, as -short permits", "true", "", "1", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(allVar, tt.all)
			given(t, map[string]string{"test.short": tt.short, "test.run": tt.run})
			if Quick() != tt.wantQuick || All() != tt.wantAll {
				t.Errorf("quick %v, all %v, want %v and %v", Quick(), All(), tt.wantQuick, tt.wantAll)
			}
		})
	}
}

// TestLeave: what is left out adds to what the caller skips, and a name given by -run wins.
func TestLeave(t *testing.T) {
	given(t, map[string]string{"test.skip": "^TestMine$", "test.run": "TestX"})
	Leave("^TestLong$")
	if got := flag.Lookup("test.skip").Value.String(); got != "^TestMine$" {
		t.Errorf("with -run %q is skipped", got)
	}
	set("test.run", "")
	Leave("^TestLong$")
	if got := flag.Lookup("test.skip").Value.String(); got != "^TestMine$|^TestLong$" {
		t.Errorf("%q is skipped", got)
	}
}

// TestOnly: after Only, the tests count as not named, as nobody named them.
func TestOnly(t *testing.T) {
	t.Setenv(allVar, "")
	given(t, map[string]string{"test.run": "", "test.short": "true"})
	t.Cleanup(func() { only = "" })
	Only("^TestMain$")
	if got := flag.Lookup("test.run").Value.String(); got != "^TestMain$" || !Quick() {
		t.Errorf("%q runs, quick %v", got, Quick())
	}
}
