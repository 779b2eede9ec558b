package otlp

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// hangGuard bounds every wait for something that must happen.
const hangGuard = 60 * time.Second

var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "perstack-base-otlp")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "perstack-base")
	build := exec.Command("go", "build", "-C", "../..", "-o", binary, "./cmd/perstack-base")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// calls are requests of every kind, right and wrong.
var calls = []string{
	`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
	`{"jsonrpc":"2.0","id":"three \" é","method":"tools/call","params":{"name":"readTextFile","arguments":{"path":"none"}}}`,
	`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"exec","arguments":{"command":"sh","args":["-c","exit 7"],"env":{},"cwd":"","stdout":true,"stderr":true},` +
		`"_meta":{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","tracestate":"a=1,b@c=2"}}}`,
	`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"skill_run","arguments":{"skill":"made","command":"echo x > out/x","output_files":["out/*"],"save_as_artifacts":true}}}`,
	`{"jsonrpc":"2.0","id":6,"method":"no/such"}`,
}

// wanted are the spans of these, by name.
var wanted = map[string]int{
	"initialize": 1, "tools/list": 1, "tools/call readTextFile": 1, "tools/call exec": 1, "tools/call skill_run": 1, "_OTHER": 1,
	"workspace.create": 1, "workspace.stage.skill": 1, "workspace.run": 1, "workspace.collect": 1, "workspace.inline": 1, "workspace.save": 1, "workspace.cleanup": 1,
}

const greeting = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// workspace has a skill.
func workspace(t *testing.T) string {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "skills/made"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "skills/made/SKILL.md"), []byte("---\nname: made\ndescription: d\n---\nDo it.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestOverStdio(t *testing.T) {
	file := filepath.Join(t.TempDir(), "spans.jsonl")
	cmd := exec.Command(binary, "--trace-file", file)
	cmd.Dir = workspace(t)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	guard := time.AfterFunc(hangGuard, func() { cmd.Process.Kill() })
	defer guard.Stop()
	answers := bufio.NewReader(out)
	for _, message := range append([]string{greeting}, calls...) {
		if _, err := io.WriteString(in, message+"\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := answers.ReadString('\n'); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	check(t, file, "pipe")
}

var listening = regexp.MustCompile(`listening on (http://\S+)`)

// TestOverHTTP ends the server by a signal.
func TestOverHTTP(t *testing.T) {
	file := filepath.Join(t.TempDir(), "spans.jsonl")
	cmd := exec.Command(binary, "--trace-file", file, "--transport", "http", "--listen", "127.0.0.1:0")
	cmd.Dir = workspace(t)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	guard := time.AfterFunc(hangGuard, func() { cmd.Process.Kill() })
	defer guard.Stop()
	said := bufio.NewScanner(stderr)
	url := ""
	for url == "" && said.Scan() {
		if m := listening.FindStringSubmatch(said.Text()); m != nil {
			url = m[1]
		}
	}
	go func() { _, _ = io.Copy(io.Discard, stderr) }()
	session := ""
	for _, message := range append([]string{greeting}, calls...) {
		req, err := http.NewRequest("POST", url, strings.NewReader(message))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%d %s %v", answer.StatusCode, body, err)
		}
		answer.Body.Close()
		if id := answer.Header.Get("Mcp-Session-Id"); id != "" {
			session = id
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(file); err != nil || session == "" || bytes.Contains(data, []byte(session)) {
		t.Errorf("the id of the session %q is in the file (%v)", session, err)
	}
	check(t, file, "tcp")
}

// check decodes every line, and looks for the spans that there must be.
func check(t *testing.T, file, transport string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]int{}
	byID := map[string]*tracepb.Span{}
	var all []*tracepb.Span
	for line := range strings.Lines(string(data)) {
		span := decode(t, line)
		names[span.Name]++
		byID[string(span.SpanId)] = span
		all = append(all, span)
	}
	if names["command"] < 2 { // and perhaps a login shell
		t.Errorf("%d commands", names["command"])
	}
	delete(names, "command")
	if fmt.Sprint(names) != fmt.Sprint(wanted) {
		t.Errorf("got  %v\nwant %v", names, wanted)
	}
	for _, span := range all {
		parent := byID[string(span.ParentSpanId)]
		server := span.Kind == tracepb.Span_SPAN_KIND_SERVER
		switch {
		case len(span.TraceId) != 16 || len(span.SpanId) != 8 || span.StartTimeUnixNano > span.EndTimeUnixNano || span.StartTimeUnixNano == 0:
			t.Errorf("%v", span)
		case server && text(span, "network.transport") != transport, server && text(span, "jsonrpc.request.id") == "":
			t.Errorf("%v", span)
		case !server && (parent == nil || !bytes.Equal(parent.TraceId, span.TraceId) || parent.StartTimeUnixNano > span.StartTimeUnixNano):
			t.Errorf("%v in %v", span, parent)
		}
		if span.Name == "tools/call exec" && (hex.EncodeToString(span.TraceId) != "4bf92f3577b34da6a3ce929d0e0e4736" || span.TraceState != "a=1,b@c=2" ||
			span.Status.GetCode() != tracepb.Status_STATUS_CODE_ERROR || text(span, "error.type") != "tool_error") {
			t.Errorf("%v", span)
		}
	}
}

// ids have the bytes of an id in hexadecimal digits, as OTLP/JSON has it; protojson
// wants base64.
var ids = regexp.MustCompile(`"(traceId|spanId|parentSpanId)":"([0-9a-f]+)"`)

// decode reads a line as the Collector's receiver does, and strictly, as nobody has to.
func decode(t *testing.T, line string) *tracepb.Span {
	t.Helper()
	if !json.Valid([]byte(line)) || !strings.HasSuffix(line, "\n") {
		t.Fatalf("no JSON: %s", line)
	}
	collected, err := new(ptrace.JSONUnmarshaler).UnmarshalTraces([]byte(line))
	if err != nil {
		t.Fatalf("the Collector does not read it: %v: %s", err, line)
	}
	seen := collected.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	text := ids.ReplaceAllStringFunc(line, func(member string) string {
		m := ids.FindStringSubmatch(member)
		raw, err := hex.DecodeString(m[2])
		if err != nil {
			t.Fatal(err)
		}
		return `"` + m[1] + `":"` + base64.StdEncoding.EncodeToString(raw) + `"`
	})
	var traces tracepb.TracesData
	if err := protojson.Unmarshal([]byte(text), &traces); err != nil { // unknown members are an error
		t.Fatalf("%v: %s", err, line)
	}
	resource := traces.ResourceSpans[0]
	span := resource.ScopeSpans[0].Spans[0]
	if seen.Name() != span.Name || seen.TraceID() != [16]byte(span.TraceId) || seen.SpanID() != [8]byte(span.SpanId) || seen.Attributes().Len() != len(span.Attributes) {
		t.Errorf("the Collector reads another span: %s", line)
	}
	named := map[string]bool{}
	for _, a := range resource.Resource.Attributes {
		named[a.Key] = a.Value.GetStringValue() != ""
	}
	if !named["service.name"] || !named["service.version"] || !named["service.instance.id"] || resource.ScopeSpans[0].Scope.Name == "" {
		t.Errorf("whose span is it? %s", line)
	}
	return span
}

func text(span *tracepb.Span, key string) string {
	for _, a := range span.Attributes {
		if v, ok := a.Value.Value.(*commonpb.AnyValue_StringValue); ok && a.Key == key {
			return v.StringValue
		}
	}
	return ""
}
