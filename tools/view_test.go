package tools

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/perstack-ai/perstack-base/sandbox/process"
)

// showing runs fn as a tool with a view, for a client that shows views or not, and
// returns what the result has for views.
func showing(t *testing.T, env *Env, views bool, fn func(context.Context, *Env, nothing) (words, error)) map[string]any {
	t.Helper()
	tool := Define(Info{Name: "t", Title: "T", Description: "A tool.", Effect: Edits, View: ViewDiff}, fn)
	ctx := WithSession(t.Context(), NewSession("s", nil))
	if views {
		ctx = WithViews(ctx)
	}
	var req mcp.CallToolRequest
	req.Params.Arguments = map[string]any{}
	result, err := tool.Bind(env, &Profile{Name: "p", Dialect: plainDialect{}}).Handler(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	if result.Meta == nil {
		return nil
	}
	return result.Meta.AdditionalFields
}

// TestNobodyLooks: where no view is shown, nothing is gathered for one and no result
// has a _meta.
func TestNobodyLooks(t *testing.T) {
	env, _ := newEnv(t)
	asked := false
	do := func(ctx context.Context, env *Env, _ nothing) (words, error) {
		ShowPlan(ctx, func() []PlanStep { asked = true; return nil })
		showRun(ctx, process.Result{ExitCode: 1})
		_, err := env.Write(ctx, "f", []byte("x\n"))
		return words{"done"}, err
	}
	if got := showing(t, env, false, do); got != nil || asked {
		t.Errorf("gathered %v, asked for the plan: %v", got, asked)
	}
	if got := showing(t, env, true, do); len(got) != 3 || !asked {
		t.Errorf("gathered %v, asked for the plan: %v", got, asked)
	}
}

// TestWriteShowsWhatWasThere tells new files from old ones, and gives up on comparing
// what is too large or cannot be read, but never on writing.
func TestWriteShowsWhatWasThere(t *testing.T) {
	env, _ := newEnv(t)
	dir := env.Files.Root()
	for name, content := range map[string]string{"old": "one\n", "large": strings.Repeat("x", MaxCompared+1), "binary": "\x00"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("old", filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	for name, want := range map[string]string{
		"new": "new file mode", "old": "-one\n+two\n", "large": "Not compared: it has 4194305 bytes, more than the 4194304 allowed.", "binary": "Binary files", "sub/new": "+two",
		"link": "diff --git a/link b/link\n",
	} {
		_ = os.WriteFile(filepath.Join(dir, "old"), []byte("one\n"), 0o644)
		got := showing(t, env, true, func(ctx context.Context, env *Env, _ nothing) (words, error) {
			_, err := env.Write(ctx, name, []byte("two\n"))
			return words{}, err
		})
		if shown, _ := got[diffKey].(string); !strings.Contains(shown, want) {
			t.Errorf("%s: %q", name, shown)
		}
		if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(data) != "two\n" {
			t.Errorf("%s: %v %.20q", name, err, data)
		}
	}
	// What fails shows nothing.
	got := showing(t, env, true, func(ctx context.Context, env *Env, _ nothing) (words, error) {
		_, err := env.Write(ctx, "../outside", []byte("two\n"))
		return words{}, err
	})
	if got != nil {
		t.Error(got)
	}
}
