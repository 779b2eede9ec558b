package baseagent

import (
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/tools"
)

// TestRefusalsWhateverTheEnd: what the sandbox has on record is told after a
// timeout and after a success too.
func TestRefusalsWhateverTheEnd(t *testing.T) {
	const sentence = "blocked by the sandbox: reach the network"
	refused := []string{sentence}
	for name, c := range map[string]struct {
		result process.Result
		want   string
	}{
		"failed":    {process.Result{ExitCode: 6, Refused: refused}, sentence + "\n[exit code: 6]"},
		"timed out": {process.Result{ExitCode: 137, TimedOut: true, Refused: refused}, "Error: Command timed out after 5 ms.\n" + sentence},
		"succeeded": {process.Result{Refused: refused}, "(no output)\n" + sentence},
		"nothing":   {process.Result{}, "(no output)"},
	} {
		if got := commandAnswer(c.result, 5, "").text.Head; got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestUnknownPlan: the error names the tool that is there.
func TestUnknownPlan(t *testing.T) {
	ctx := tools.WithSession(t.Context(), &tools.Session{OneCall: true})
	env := &tools.Env{}
	_, _, err := steps.Find(ctx, env, "nope")
	if err == nil || !strings.Contains(err.Error(), "Call update_plan without listId") {
		t.Error(err)
	}
	if _, id, err := steps.Find(ctx, env, ""); err != nil || !strings.HasPrefix(id, "plan_") {
		t.Error(id, err)
	}
}
