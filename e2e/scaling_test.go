//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// scaling is the document whose table TestMeasureScaling writes, between these markers.
const (
	scaling      = "../docs/scaling.md"
	scalingBegin = "<!-- scaling:begin -->\n"
	scalingEnd   = "<!-- scaling:end -->"
)

// What is measured: enough to be no accident, and few enough for a small machine.
const (
	idleSessions = 5000
	usedSessions = 50
	callers      = 16
	callTime     = 4 * time.Second
)

// TestMeasureScaling measures what one process holds and writes the table of docs/scaling.md. It proves nothing, so it runs
// only when it is asked to.
func TestMeasureScaling(t *testing.T) {
	if os.Getenv("PERSTACK_BASE_MEASURE") == "" {
		t.Skip("writes the table of docs/scaling.md; set PERSTACK_BASE_MEASURE=1")
	}
	var table strings.Builder
	fmt.Fprintf(&table, "%d CPUs, %s/%s; client and server on the same machine.\n\n| what | measured |\n|---|---|\n", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	row := func(what, format string, args ...any) {
		fmt.Fprintf(&table, "| %s | %s |\n", what, fmt.Sprintf(format, args...))
	}
	s := startSite(t, workspace(t), "http")
	visit(s, false).initialize()
	before := residentKB(t, s.cmd.Process.Pid)
	row("memory of a server with one session", "%.1f MB", float64(before)/1024)
	for range idleSessions {
		visit(s, false).initialize()
	}
	idle := residentKB(t, s.cmd.Process.Pid)
	row(fmt.Sprintf("memory of an idle session (of %d)", idleSessions), "%.1f KB", float64(idle-before)/idleSessions)
	used := make([]*visitor, usedSessions)
	for i := range used {
		used[i] = visit(s, false)
		used[i].initialize()
		used[i].mustCall("exec", string(run("echo ran")), "ran")
	}
	row(fmt.Sprintf("memory of the server for a session that has run a command (of %d)", usedSessions), "%.0f KB", float64(residentKB(t, s.cmd.Process.Pid)-idle)/usedSessions)
	for _, call := range []struct{ what, tool, args string }{
		{"`readTextFile`", "readTextFile", `{"path":"a.txt"}`},
		{"`writeTextFile`", "writeTextFile", `{"path":"a.txt","text":"one\n"}`},
		{"`exec` of `true`", "exec", string(run("true"))},
	} {
		used[0].mustCall("writeTextFile", `{"path":"a.txt","text":"one\n"}`, "one")
		row("calls of "+call.what+", in sessions", "%.0f a second", rate(s, false, call.tool, call.args))
		row("calls of "+call.what+", stateless (2026-07-28)", "%.0f a second", rate(s, true, call.tool, call.args))
	}
	document, err := os.ReadFile(scaling)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(document), scalingBegin)
	_, tail, found := strings.Cut(rest, scalingEnd)
	if !ok || !found {
		t.Fatalf("%s has lost its markers", scaling)
	}
	if err := os.WriteFile(scaling, []byte(head+scalingBegin+table.String()+scalingEnd+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}

// rate is how many calls a second some clients make together.
func rate(s *site, modern bool, tool, args string) float64 {
	var calls atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for range callers {
		all.Go(func() {
			v := visit(s, modern)
			v.initialize()
			for time.Since(began) < callTime {
				if result, err := v.call(tool, json.RawMessage(args)); err != nil || result.IsError {
					v.t.Errorf("%s: %v %v", tool, result, err)
					return
				}
				calls.Add(1)
			}
		})
	}
	all.Wait()
	return float64(calls.Load()) / time.Since(began).Seconds()
}
