package server

import (
	"strings"
	"testing"
	"time"
)

// TestTimeoutsFit: whatever --timeout may be, the deadline that a tool then lists
// as its default is one that it takes; what would not fit is refused at the start.
func TestTimeoutsFit(t *testing.T) {
	tools := 0
	for _, timeout := range []time.Duration{0, MinTimeout, time.Second, MaxTimeout} {
		for _, p := range Profiles {
			s := newServer(t, Config{Workspace: t.TempDir(), Tools: []string{p.Name}, Timeout: timeout})
			for _, l := range s.Listed() {
				for _, a := range Arguments(l.Tool) {
					def, isNumber := a.Default.(float64)
					if !isNumber {
						continue
					}
					tools++
					if a.Minimum != nil && def < *a.Minimum || a.Maximum != nil && def > *a.Maximum {
						t.Errorf("--timeout %v: %s.%s: %s is %v unless given, which is not from %v to %v", timeout, p.Name, l.Tool.Name, a.Name, def, *a.Minimum, *a.Maximum)
					}
					if strings.HasPrefix(a.Name, "timeout") && def == 0 {
						t.Errorf("--timeout %v: %s.%s: %s is 0, which is never", timeout, p.Name, l.Tool.Name, a.Name)
					}
				}
			}
		}
	}
	if tools == 0 {
		t.Error("no tool has a default to look at")
	}
	for _, timeout := range []time.Duration{-1, time.Microsecond, MaxTimeout + 1} {
		if s, err := New(Config{Workspace: t.TempDir(), Timeout: timeout}); err == nil {
			s.Close()
			t.Errorf("a server with the timeout %v was made", timeout)
		}
	}
}
