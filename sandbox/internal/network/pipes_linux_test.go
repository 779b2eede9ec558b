package network

import (
	"os"
	"strings"
	"testing"
)

// pipes counts those of this process.
func pipes(t *testing.T) (n int) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range all {
		if to, _ := os.Readlink("/proc/self/fd/" + fd.Name()); strings.HasPrefix(to, "pipe:") {
			n++
		}
	}
	return n
}

func TestIdleRelaysHaveNoPipes(t *testing.T) {
	gateway, server := listen(t), listen(t)
	g := testGate(t, "198.51.100.1", &zone{}, to(server))
	before := pipes(t)
	for range 20 {
		r := relay(t, g, gateway, server)
		through(t, r.command, r.server)
		through(t, r.server, r.command)
	}
	if n := pipes(t); n > before {
		t.Error(n-before, "descriptors of pipes more than before")
	}
}
