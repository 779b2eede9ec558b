package e2e

import (
	"os/exec"
	"testing"
)

// viewCases is how many things e2e/clients/views.mjs shows, each on wide and light and
// on narrow and dark.
const viewCases = 49

// TestViews shows the views in a real browser, by the library that hosts are made of:
// what real calls answer and what is hostile. Nothing of it runs, hides or leaves.
func TestViews(t *testing.T) {
	t.Parallel()
	nodeDir(t)
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
			break
		}
	}
	if browser == "" {
		t.Skip("there is no browser; apt-get install --no-install-recommends chromium")
	}
	nodeScript(t, viewCases, "views.mjs", browser, binary, workspace(t))
}
