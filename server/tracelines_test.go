package server

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/server/internal/servertest"
)

// A spanLine is a span as the file has it.
type spanLine struct {
	TraceID, SpanID, ParentSpanID, TraceState, Name string
	Kind                                            int
	StartTimeUnixNano, EndTimeUnixNano              string
	Attributes                                      []struct {
		Key   string
		Value struct {
			StringValue, IntValue string
			BoolValue             *bool
		}
	}
	Status struct{ Code int }
}

// String is the span without what differs from run to run.
func (s spanLine) String() string {
	var b strings.Builder
	b.WriteString(s.Name)
	for _, a := range s.Attributes {
		value := a.Value.StringValue + a.Value.IntValue
		if a.Value.BoolValue != nil {
			value = fmt.Sprint(*a.Value.BoolValue)
		}
		switch a.Key {
		case "mcp.method.name", "gen_ai.operation.name", "network.transport", "mcp.protocol.version", "jsonrpc.request.id", "mcp.session.id":
			continue // the same in all, see TestSpanOfARequest
		case "perstack_base.tier":
			value = "T"
		}
		_, name, _ := strings.Cut(a.Key, ".")
		fmt.Fprintf(&b, " %s=%s", name, value)
	}
	if s.Status.Code == 2 {
		b.WriteString(" FAILED")
	}
	return b.String()
}

func (s spanLine) get(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.StringValue + a.Value.IntValue
		}
	}
	return ""
}

// traced is a server that writes spans; read returns those in the file.
func traced(t *testing.T, cfg Config) (s *Server, read func() []spanLine) {
	t.Helper()
	cfg.TraceFile = filepath.Join(t.TempDir(), "spans.jsonl")
	return newServer(t, cfg), func() []spanLine { return readSpans(t, cfg.TraceFile) }
}

func readSpans(t *testing.T, path string) (spans []spanLine) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.Lines(string(data)) {
		var line struct {
			ResourceSpans []struct{ ScopeSpans []struct{ Spans []spanLine } }
		}
		if strings.HasSuffix(text, "\n") { // else it is being written
			if err := json.Unmarshal([]byte(text), &line); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			spans = append(spans, line.ResourceSpans[0].ScopeSpans[0].Spans[0])
		}
	}
	return spans
}

// awaitSpan waits for the span of a name.
func awaitSpan(t *testing.T, read func() []spanLine, name string) spanLine {
	t.Helper()
	for deadline := time.Now().Add(servertest.Hang); ; time.Sleep(5 * time.Millisecond) {
		spans := read()
		if i := slices.IndexFunc(spans, func(s spanLine) bool { return s.Name == name }); i >= 0 {
			return spans[i]
		}
		if time.Now().After(deadline) {
			t.Fatalf("there is no span %s in %v", name, spans)
		}
	}
}

func execArgs(script string) string {
	args, _ := json.Marshal(map[string]any{"command": "sh", "args": []string{"-c", script}, "env": map[string]string{}, "cwd": "", "stdout": true, "stderr": true})
	return string(args)
}

// tree draws spans of one trace below their parents, in the order of their beginning.
func tree(spans []spanLine) string {
	slices.SortStableFunc(spans, func(a, b spanLine) int { return strings.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano) })
	var b strings.Builder
	var draw func(parent, indent string)
	draw = func(parent, indent string) {
		for _, s := range spans {
			if s.ParentSpanID == parent {
				b.WriteString(indent + s.String() + "\n")
				draw(s.SpanID, indent+"  ")
			}
		}
	}
	draw("", "")
	return b.String()
}
