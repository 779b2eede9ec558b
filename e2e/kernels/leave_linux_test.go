package kernels

import (
	_ "embed"
	"strings"
	"testing"
)

//go:embed leave.sh
var leaveScript string

// leave has commands of a mode try to get out of what control groups keep for them.
func leave(mode, who string) job {
	return job{strings.Join([]string{"leave", mode, who}, " "), "root", "mode=" + mode + " who=" + who + "\n" + leaveScript, func(t *testing.T, out string, code int) {
		if code != 0 || strings.Contains(out, "fail:") || strings.Count(out, "ok:") < 10 {
			t.Errorf("code %d:\n%s", code, out)
		}
	}}
}

// TestKernelLeave: commands that are confined change nothing of what keeps their limits.
func TestKernelLeave(t *testing.T) {
	machine{arch: "amd64", kernel: debian612, jobs: []job{leave("landlock", "user"), leave("isolate", "user"), leave("off", "user"), leave("landlock", "root"), leave("isolate", "root")}}.run(t)
}
