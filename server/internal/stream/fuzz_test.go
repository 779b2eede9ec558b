package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/server/internal/dispatch"
	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
	. "github.com/perstack-ai/perstack-base/server/internal/servertest"
)

// Whatever a line is: no panic, nothing but JSON out, one reply for a request
// and none for anything else.
func FuzzDispatcher(f *testing.F) {
	for _, seed := range []string{
		Ping, Greeting("1", "2025-03-26"), ToolCall("1", "noop", "{}"), ToolCall("1", "echo", `{"text":5}`),
		`[` + Ping + `,1]`, `{}`, `{"id":1}`, `{"jsonrpc":"2.0","id":"a","result":1}`, CancelOf("1"), `"\ud800"`, "\xff",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"Name":"noop","_META":{},` + ModernMeta + `}}`,
		`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping","params":null}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"y:"}}`,
	} {
		f.Add([]byte(seed))
	}
	b := New()
	d := b.Dispatcher()
	d.Router = quiet{b.MCPServer}
	f.Fuzz(func(t *testing.T, in []byte) {
		if bytes.Contains(in, []byte("gate")) || bytes.Contains(in, []byte("lane")) || bytes.Contains(in, []byte("deaf")) {
			return // these wait for the test
		}
		var out bytes.Buffer
		c, err := Open(context.Background(), d, "s", func(line []byte) error { out.Write(line); return nil })
		if err != nil {
			t.Fatal(err)
		}
		in = jsonrpc.TrimMessage(in)
		if call := c.Receive(in); call != nil {
			c.Serve(call)
		}
		c.End()
		<-c.idle()
		c.Close()
		checkReplies(t, in, out.Bytes())
	})
}

// quiet lets conns share one id.
type quiet struct{ dispatch.Router }

func (quiet) UnregisterSession(context.Context, string) {}

func (quiet) RegisterSession(context.Context, mcpserver.ClientSession) error { return nil }

func checkReplies(t *testing.T, in, out []byte) {
	t.Helper()
	if bytes.Contains(out, []byte("-32603")) {
		t.Fatalf("%q is answered by %s", in, out)
	}
	replies := bytes.Count(out, []byte("\n"))
	for l := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte("\n")), []byte("\n")) {
		if replies > 0 && !json.Valid(l) {
			t.Fatalf("%q is answered by %q", in, out)
		}
	}
	want := 1
	switch {
	case len(in) == 0:
		want = 0
	case jsonrpc.CheckUTF8(in) == nil && in[0] == '{':
		m, fault := jsonrpc.Read(in)
		if fault != nil || m.Check() != nil {
			break
		}
		if r := dispatch.NewRequest(&m); m.IsResponse() || m.ID == nil {
			want = 0
		} else if r.Subscribes(nil) {
			want = replies // closed without an answer
		}
	}
	if replies != want {
		t.Fatalf("%d replies to %q: %s", replies, in, out)
	}
}
