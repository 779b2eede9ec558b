package server

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/perstack-ai/perstack-base/server/internal/dispatch"
	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
	"github.com/perstack-ai/perstack-base/server/internal/servertest"
	"github.com/perstack-ai/perstack-base/tools"
)

// handleOnce serves one call that does nothing of note.
func handleOnce(tb testing.TB, s *Server, session *tools.Session, client *dispatch.Session) func() {
	m, fault := jsonrpc.Read([]byte(servertest.ToolCall("1", "attemptCompletion", `{}`)))
	if fault != nil {
		tb.Fatal(fault)
	}
	ctx := tools.WithSession(tb.Context(), session)
	return func() {
		r := dispatch.NewRequest(&m)
		result, fault := s.dispatcher.Handle(ctx, &r, client)
		if _, sent := r.Encode(result, fault); sent != nil {
			tb.Fatal(sent)
		}
	}
}

// TestSpansOffAllocateNothing: a call of a server that writes no spans has what it
// would have without the code for them, and a request of one that does has a few
// allocations more.
func TestSpansOffAllocateNothing(t *testing.T) {
	s := newServer(t, Config{Workspace: workspace(t)})
	session, end := s.sessions.Open("test")
	defer end()
	client := dispatch.NewSession("test", nil)
	off := testing.AllocsPerRun(200, handleOnce(t, s, session, client))
	on, _ := traced(t, Config{Workspace: workspace(t)})
	with := testing.AllocsPerRun(200, handleOnce(t, on, session, client))
	if with <= off || with > off+20 {
		t.Errorf("%v allocations a call without spans, %v with", off, with)
	}
	m, _ := jsonrpc.Read([]byte(servertest.ToolCall("1", "attemptCompletion", `{}`)))
	r := dispatch.NewRequest(&m)
	if n := testing.AllocsPerRun(200, func() { s.dispatcher.Refused(t.Context(), &r, client, nil) }); n != 0 {
		t.Errorf("%v allocations for a span that is not", n)
	}
}

// BenchmarkSpans is what spans add to a call that does nothing: with them, and without.
func BenchmarkSpans(b *testing.B) {
	for _, file := range []string{"", filepath.Join(b.TempDir(), "spans.jsonl")} {
		name := "on"
		if file == "" {
			name = "off"
		}
		b.Run(name, func(b *testing.B) {
			s, err := New(Config{Workspace: b.TempDir(), TraceFile: file, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			session, end := s.sessions.Open("bench")
			defer end()
			once := handleOnce(b, s, session, dispatch.NewSession("bench", nil))
			b.ReportAllocs()
			for b.Loop() {
				once()
			}
		})
	}
}
