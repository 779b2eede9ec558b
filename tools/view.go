package tools

import (
	"context"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/tools/internal/diff"
)

// A View is a document that shows people what calls of a tool do. Clients that know
// the MCP Apps extension show it beside the result.
type View string

// The views. The zero View means that a tool has none.
const (
	ViewPlan     View = "plan"
	ViewDiff     View = "diff"
	ViewTerminal View = "terminal"
)

// What a result carries in its _meta for the views, which no model reads.
const (
	diffKey = "perstack-base/diff" // a unified diff of all files, see package diff
	planKey = "perstack-base/plan" // a planShown
	runKey  = "perstack-base/run"  // a runShown

	outputKey = "perstack-base/output" // a text with the colours that it had on a terminal
)

// maxShownOutput bounds that text, in bytes.
const maxShownOutput = 64 << 10

type viewsKey struct{}

// WithViews returns a context whose client shows views. Without it nothing is gathered
// for them.
func WithViews(ctx context.Context) context.Context { return context.WithValue(ctx, viewsKey{}, true) }

// TakesViews tells whether the client shows views.
func TakesViews(ctx context.Context) bool { return ctx.Value(viewsKey{}) != nil }

// A shown is what one call has for the view of its tool.
type shown struct {
	mu      sync.Mutex
	values  map[string]any
	changes []diff.Change
}

type shownKey struct{}

// withShown makes room for what a call has to show, where the client shows views.
func (t *Tool) withShown(ctx context.Context) (context.Context, *shown) {
	if t.View == "" || !TakesViews(ctx) {
		return ctx, nil
	}
	s := &shown{values: map[string]any{}}
	return context.WithValue(ctx, shownKey{}, s), s
}

// shownOf returns where the call in ctx gathers what it shows, nil when the client shows no views.
func shownOf(ctx context.Context) *shown {
	s, _ := ctx.Value(shownKey{}).(*shown)
	return s
}

func (s *shown) set(key string, value any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[key] = value
}

// forget drops everything: the result is withheld from the client.
func (s *shown) forget() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values, s.changes = map[string]any{}, nil
}

// addTo puts what was gathered into the _meta of a result.
func (s *shown) addTo(r *mcp.CallToolResult) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.changes) > 0 {
		s.values[diffKey] = diff.Unified(s.changes)
	}
	if len(s.values) == 0 {
		return
	}
	meta := r.EnsureResultMeta()
	if meta.AdditionalFields == nil {
		meta.AdditionalFields = map[string]any{}
	}
	for key, value := range s.values {
		meta.AdditionalFields[key] = value
	}
}

// A PlanStep is one entry of a list as the view of plans shows it.
type PlanStep struct {
	Text   string `json:"text"`
	Status string `json:"status"` // pending, in_progress or completed
}

type planShown struct {
	Before []PlanStep `json:"before"`
}

// ShowPlan shows how a list was before the call. It asks for that only where the
// client shows views.
func ShowPlan(ctx context.Context, before func() []PlanStep) {
	if s := shownOf(ctx); s != nil {
		s.set(planKey, planShown{append([]PlanStep{}, before()...)})
	}
}

// ShowOutput shows the output of a command as it looked on a terminal, where the result
// has the text alone. One that is too long is not shown. It asks for that only where the
// client shows views.
func ShowOutput(ctx context.Context, coloured func() string) {
	if s := shownOf(ctx); s != nil {
		if text := coloured(); len(text) <= maxShownOutput && strings.Contains(text, "\x1b") {
			s.set(outputKey, text)
		}
	}
}

// A runShown is how a command ended, which not every result tells.
type runShown struct {
	ExitCode   int      `json:"exitCode"`
	Signal     string   `json:"signal,omitempty"`
	TimedOut   bool     `json:"timedOut,omitempty"`
	Cancelled  bool     `json:"cancelled,omitempty"`
	DurationMS int64    `json:"durationMs"`
	Refused    []string `json:"refused,omitempty"` // with what permits it
}

func showRun(ctx context.Context, r process.Result) {
	if s := shownOf(ctx); s != nil {
		s.set(runKey, runShown{r.ExitCode, r.Signal, r.TimedOut, r.Cancelled, r.Duration.Milliseconds(), r.Refused})
	}
}
