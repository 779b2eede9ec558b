package process

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// silenceInTest is how long the engines of these tests may say nothing.
const silenceInTest = 500 * time.Millisecond

// TestSilentEngine: one that neither runs a container nor says why is given up, and the
// error names the way out; one that fetches an image may be silent for longer.
func TestSilentEngine(t *testing.T) {
	t.Parallel()
	for mode, before := range map[string]string{"silent": "", "stuck": "WARNING: something of no importance"} {
		t.Run(mode, func(t *testing.T) {
			c := awayCommands(t, mode, Config{})
			c.fleet.Silence = silenceInTest
			ends(t, "a command", func() {
				_, err := c.NewShell().Run(t.Context(), sh("true"))
				var failed *ContainerError
				if !errors.As(err, &failed) || !strings.Contains(failed.What, "has said nothing for") || !strings.Contains(failed.What, before) || failed.Way == "" {
					t.Errorf("%v", err)
				}
			})
		})
	}
	t.Run("fetching", func(t *testing.T) {
		c := awayCommands(t, "fetching", Config{})
		c.fleet.Silence = silenceInTest
		if res := run(t, c.NewShell(), sh("echo here")); text(res.Stdout) != "here\n" {
			t.Errorf("%q", text(res.Stdout))
		}
	})
	t.Run("nobody waits any more", func(t *testing.T) {
		c := awayCommands(t, "silent", Config{})
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		ends(t, "a command", func() {
			if _, err := c.NewShell().Run(ctx, sh("true")); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
			_ = c.Close()
		})
	})
}
