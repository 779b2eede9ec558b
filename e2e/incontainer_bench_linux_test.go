package e2e

import (
	"testing"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
)

// BenchmarkInContainer measures a short command in a warm container, and the same
// command outside, by the mechanism that also confines it in the container. That is the floor: what
// is above it is the way into the container and back.
func BenchmarkInContainer(b *testing.B) {
	testlevel.Battery(b, "containers take seconds")
	e, err := engines["docker"]()
	if err == nil {
		err = e.have(busyboxImage)
	}
	if err != nil {
		b.Skip(err)
	}
	line := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exec",` +
		`"arguments":{"command":"true","args":[],"env":{},"cwd":"","stdout":true,"stderr":true}}}` + "\n")
	for _, way := range []struct {
		name  string
		flags []string
	}{
		{"true", e.flags(busyboxImage)},
		{"floor=outside", []string{"serve", "--sandbox", "landlock"}},
	} {
		b.Run(way.name, func(b *testing.B) {
			c, _ := startRaw(b, workspace(b), way.flags...)
			c.call(b, line) // which makes the container
			for b.Loop() {
				c.call(b, line)
			}
		})
	}
}
