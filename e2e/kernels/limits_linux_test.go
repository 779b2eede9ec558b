package kernels

import (
	_ "embed"
	"strings"
	"testing"
)

//go:embed limits.sh
var limitsScript string

// limits runs commands of a mode under limits that control groups keep.
func limits(mode, who string) job {
	return job{strings.Join([]string{"limits", mode, who}, " "), "root", "mode=" + mode + " who=" + who + "\n" + limitsScript, func(t *testing.T, out string, code int) {
		if code != 0 || strings.Contains(out, "fail:") || strings.Count(out, "ok:") < 10 {
			t.Errorf("code %d:\n%s", code, out)
		}
	}}
}

// late is for a machine on which no program traces another, from then on.
func late(mode string) job {
	return job{"limits late " + mode, "root", "late=1 mode=" + mode + " who=user\n" + limitsScript, func(t *testing.T, out string, code int) {
		if code != 0 || strings.Contains(out, "fail:") || strings.Count(out, "ok:") != 3 {
			t.Errorf("code %d:\n%s", code, out)
		}
	}}
}

// TestKernelLimits612 and TestKernelLimits61: where a part of the tree of control
// groups is the user's, every limit is kept exactly, in every mechanism.
func TestKernelLimits612(t *testing.T) {
	machine{arch: "amd64", kernel: debian612, jobs: []job{limits("isolate", "user"), limits("landlock", "user"), limits("off", "user"), late("landlock"), late("off")}}.run(t)
}

func TestKernelLimits61(t *testing.T) {
	machine{arch: "amd64", kernel: debian61, jobs: []job{limits("isolate", "root"), limits("landlock", "root")}}.run(t)
}
