package server

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/iotest"

	mcpserver "github.com/mark3labs/mcp-go/server"
)

// However the bytes arrive, the reader hands over what splitting the whole
// text at line ends gives.
func FuzzLineReader(f *testing.F) {
	for _, seed := range []string{"", "a\nb", "\xEF\xBB\xBF{}\r\n", " \n\n x ", "\xEF\xBB", "a\x00\nb\r\r\n"} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, in []byte, blow int) {
		if blow > 0 && len(in) > 0 { // make long lines out of short ones
			in = bytes.Replace(in, in[:1], bytes.Repeat(in[:1], blow%200000), 1)
		}
		var want [][]byte
		for l := range bytes.SplitSeq(in, []byte("\n")) {
			if l = trimMessage(l); len(l) > 0 {
				want = append(want, l)
			}
		}
		lines := newLineReader(iotest.OneByteReader(bytes.NewReader(in)))
		for {
			got, over, err := lines.next()
			if err != nil {
				break
			}
			if over != nil {
				t.Fatal("a short line is too long")
			}
			if len(got) == 0 {
				continue
			}
			if len(want) == 0 || !bytes.Equal(got, want[0]) {
				t.Fatalf("got %q, want %q", clip(string(got), 100), want)
			}
			want = want[1:]
		}
		if len(want) > 0 {
			t.Fatalf("missing %q", want)
		}
	})
}

// An id that is recovered is one, and of a message that is valid JSON it is
// the message's own.
func FuzzRecoverID(f *testing.F) {
	for _, seed := range []string{`{"id":1}`, `{"a":[{"id":2}],"id":"x\"" } `, `{"id":1.5}`, `{"a":"\",\"id\":3}`, `{"id":`, `[{"id":1}]`, `{"a":1,"id":12`} {
		f.Add([]byte(seed), 10)
	}
	f.Fuzz(func(t *testing.T, in []byte, cut int) {
		cut = min(max(cut, 0), len(in))
		id := recoverID(in[:cut], in[cut:])
		if id == nil {
			return
		}
		if !goodID(id) || !json.Valid(id) {
			t.Fatalf("%q is no id", id)
		}
		if checkText(in) != nil || trimMessage(in)[0] != '{' || strings.Count(string(in), "id") > 1 || strings.Contains(string(in), "\\") {
			return
		}
		m := readMessage(trimMessage(in))
		if !bytes.Equal(id, m.id) {
			t.Fatalf("got %q of %q, its id is %q", id, in, m.id)
		}
	})
}

// Whatever a line is: no panic, nothing but JSON out, one reply for a request
// and none for anything else.
func FuzzDispatcher(f *testing.F) {
	for _, seed := range []string{
		ping, greeting("1", "2025-03-26"), toolCall("1", "noop", "{}"), toolCall("1", "echo", `{"text":5}`),
		`[` + ping + `,1]`, `{}`, `{"id":1}`, `{"jsonrpc":"2.0","id":"a","result":1}`, cancelOf("1"), `"\ud800"`, "\xff",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"Name":"noop","_META":{},` + modernMeta + `}}`,
		`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping","params":null}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"y:"}}`,
	} {
		f.Add([]byte(seed))
	}
	b := newBench()
	cfg := b.config().connConfig
	cfg.handler = quiet{b.MCPServer}
	f.Fuzz(func(t *testing.T, in []byte) {
		if bytes.Contains(in, []byte("gate")) || bytes.Contains(in, []byte("lane")) || bytes.Contains(in, []byte("deaf")) {
			return // these wait for the test
		}
		var out bytes.Buffer
		c, err := openConn(context.Background(), cfg, "s", func(line []byte) error { out.Write(line); return nil })
		if err != nil {
			t.Fatal(err)
		}
		in = trimMessage(in)
		if call := c.receive(in); call != nil {
			c.serve(call)
		}
		c.end()
		<-c.idle()
		c.close()
		checkReplies(t, in, out.Bytes())
	})
}

// quiet lets conns share one id.
type quiet struct{ handler }

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
	case checkText(in) == nil && in[0] == '{':
		m := readMessage(in)
		if m.check() == nil && (m.isResponse() || m.id == nil) {
			want = 0
		}
		if m.check() == nil && !m.isResponse() {
			if r := m.request(0); r.subscribes(nil) {
				want = replies // closed without an answer
			}
		}
	}
	if replies != want {
		t.Fatalf("%d replies to %q: %s", replies, in, out)
	}
}
