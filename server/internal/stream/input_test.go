package stream

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
	. "github.com/perstack-ai/perstack-base/server/internal/servertest"
)

const (
	notJSON  = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"the message is not one valid JSON value"}}`
	notUTF8  = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"the message is not valid UTF-8"}}`
	badID    = `id must be a string or an integer`
	noBatch  = `batches exist in protocol version 2025-03-26 only; send one message at a time`
	notObj   = `a message must be a JSON object`
	version2 = `jsonrpc must be "2.0"`
)

// Each case is a whole stream and everything that comes out of it. A Ping
// follows each, so that the connection is seen to go on.
func TestInput(t *testing.T) {
	huge := strings.Repeat("9", 400)
	for _, c := range []struct{ name, in, want string }{
		{"not JSON", `{"jsonrpc"`, notJSON},
		{"a bare word", `hello`, notJSON},
		{"not UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"\xff\"}", notUTF8},
		{"a surrogate in UTF-8", "{\"a\":\"\xed\xa0\x80\"}", notUTF8},
		{"NUL between", "{\"jsonrpc\":\"2.0\",\x00\"id\":7,\"method\":\"ping\"}", notJSON},
		{"NUL in a string", "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"pi\x00ng\"}", notJSON},
		{"two on a line", Ping + Ping, notJSON},
		{"too deep", strings.Repeat("[", 20000), notJSON},
		{"a string", `"ping"`, Refusal("null", -32600, notObj)},
		{"a number", `7`, Refusal("null", -32600, notObj)},
		{"null", `null`, Refusal("null", -32600, notObj)},
		{"true", `true`, Refusal("null", -32600, notObj)},
		{"an array", `[` + Ping + `]`, Refusal("null", -32600, noBatch)},
		{"an empty array", `[]`, Refusal("null", -32600, noBatch)},
		{"an empty object", `{}`, Refusal("null", -32600, version2)},
		{"jsonrpc missing", `{"id":7,"method":"ping"}`, Refusal("7", -32600, version2)},
		{"jsonrpc 1.0", `{"jsonrpc":"1.0","id":"7","method":"ping"}`, Refusal(`"7"`, -32600, version2)},
		{"jsonrpc a number", `{"jsonrpc":2.0,"id":7,"method":"ping"}`, Refusal("7", -32600, version2)},
		{"jsonrpc wrong, id bad", `{"jsonrpc":"1.0","id":null,"method":"ping"}`, Refusal("null", -32600, version2)},
		{"jsonrpc in capitals", `{"JSONRPC":"2.0","id":7,"method":"ping"}`, Refusal("7", -32600, version2)},
		{"method missing", `{"jsonrpc":"2.0","id":7}`, Refusal("7", -32600, "method is missing")},
		{"method and id missing", `{"jsonrpc":"2.0"}`, Refusal("null", -32600, "method is missing")},
		{"method a number", `{"jsonrpc":"2.0","id":7,"method":5}`, Refusal("7", -32600, "method must be a string")},
		{"method null", `{"jsonrpc":"2.0","id":7,"method":null}`, Refusal("7", -32600, "method must be a string")},
		{"id null", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, Refusal("null", -32600, badID)},
		{"id a fraction", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, Refusal("null", -32600, badID)},
		{"id 1.0", `{"jsonrpc":"2.0","id":1.0,"method":"ping"}`, Refusal("null", -32600, badID)},
		{"id with exponent", `{"jsonrpc":"2.0","id":1e3,"method":"ping"}`, Refusal("null", -32600, badID)},
		{"id true", `{"jsonrpc":"2.0","id":true,"method":"ping"}`, Refusal("null", -32600, badID)},
		{"id an object", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, Refusal("null", -32600, badID)},
		{"id an array", `{"jsonrpc":"2.0","id":[1],"method":"ping"}`, Refusal("null", -32600, badID)},
		{"id beyond 2^53", `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, `{"jsonrpc":"2.0","id":9007199254740993,"result":{}}`},
		{"id beyond float64", `{"jsonrpc":"2.0","id":` + huge + `,"method":"ping"}`, `{"jsonrpc":"2.0","id":` + huge + `,"result":{}}`},
		{"id negative zero", `{"jsonrpc":"2.0","id":-0,"method":"ping"}`, `{"jsonrpc":"2.0","id":-0,"result":{}}`},
		{"id echoed as it was sent", `{"jsonrpc":"2.0","id":"<\u0061/é>","method":"ping"}`, `{"jsonrpc":"2.0","id":"<\u0061/é>","result":{}}`},
		{"id empty", `{"jsonrpc":"2.0","id":"","method":"ping"}`, `{"jsonrpc":"2.0","id":"","result":{}}`},
		{"keys with escapes", `{"jsonrpc":"2.0","\u0069d":7,"method":"p\u0069ng"}`, `{"jsonrpc":"2.0","id":7,"result":{}}`},
		{"a result beside a method", `{"jsonrpc":"2.0","id":7,"method":"ping","result":{}}`, `{"jsonrpc":"2.0","id":7,"result":{}}`},
		{"unknown method", `{"jsonrpc":"2.0","id":7,"method":"no/such"}`, Refusal("7", -32601, "Method no/such not found")},
		{"a notification's name with an id", `{"jsonrpc":"2.0","id":7,"method":"notifications/cancelled"}`, Refusal("7", -32601, "Method notifications/cancelled not found")},
		{"unknown tool", ToolCall("7", "nope", "{}"), Refusal("7", -32602, `Unknown tool "nope".`)},
		{"tool name missing", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}}`, Refusal("7", -32602, "params.name is missing: it names the tool to call")},
		{"no params", `{"jsonrpc":"2.0","id":7,"method":"tools/call"}`, Refusal("7", -32602, "params.name is missing: it names the tool to call")},
		{"tool name a number", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":5}}`, Refusal("7", -32602, "params.name must be a string: it names the tool to call")},
		{"params a string", `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":"x"}`, Refusal("7", -32602, "the params of tools/list do not have the form that the protocol gives them")},
		{"_meta a number", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"noop","_meta":5}}`, Refusal("7", -32602, "the params of tools/call do not have the form that the protocol gives them")},
		{"intercepted", `{"jsonrpc":"2.0","id":7,"method":"skills/list"}`, `{"jsonrpc":"2.0","id":7,"result":{"skills":[]}}`},
		{"a panic in a handler", ToolCall("7", "panics", "{}"), ErrText("7", "internal: panics failed inside the server; the server goes on.")},
		{"a Go error of a handler", ToolCall("7", "fails", "{}"), ErrText("7", "internal: fails failed inside the server; the server goes on.")},

		{"blank lines", "\n  \n\t\r\n\xEF\xBB\xBF\n", ""},
		{"unknown notification", `{"jsonrpc":"2.0","method":"notifications/whatever"}`, ""},
		{"a call without id", `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"noop"}}`, ""},
		{"initialize without id", `{"jsonrpc":"2.0","method":"initialize"}`, ""},
		{"a response to nothing", `{"jsonrpc":"2.0","id":"srv-1","result":{}}`, ""},
		{"an error with id null", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}`, ""},
		{"cancel of nothing", CancelOf("99"), ""},
		{"malformed cancel", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}`, ""},
		{"cancel without params", `{"jsonrpc":"2.0","method":"notifications/cancelled"}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := []string{Pong}
			if c.want != "" {
				want = append(want, c.want)
			}
			sameLines(t, talk(t, c.in+"\n"+Ping+"\n"), want)
		})
	}
}

// sameLines compares without order: calls answer when they are done.
func sameLines(t *testing.T, got string, want []string) {
	t.Helper()
	left := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	for _, w := range want {
		found := false
		for i, g := range left {
			if g == w {
				left = append(left[:i:i], left[i+1:]...)
				found = true
				break
			}
		}
		if !found {
			t.Errorf("missing %s\nin %s", w, got)
		}
	}
	if len(left) > 0 {
		t.Errorf("beyond what is wanted: %q", left)
	}
}

func TestFraming(t *testing.T) {
	two := strings.Replace(Ping, `"id":1`, `"id":2`, 1)
	for _, c := range []struct {
		name, in string
		answers  int
	}{
		{"LF", Ping + "\n" + two + "\n", 2},
		{"CRLF", Ping + "\r\n" + two + "\r\n", 2},
		{"no end to the last line", Ping + "\n" + two, 2},
		{"a byte order mark", "\xEF\xBB\xBF" + Ping + "\n\xEF\xBB\xBF" + two + "\n", 2},
		{"blanks around", " \t" + Ping + " \t\n \xEF\xBB\xBF " + two + "\r\r\n", 2},
		{"nothing", "", 0},
		{"only an end", "\n", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := []string{Pong, strings.Replace(Pong, `"id":1`, `"id":2`, 1)}[:c.answers]
			got := talk(t, c.in)
			if c.answers == 0 {
				if got != "" {
					t.Fatalf("got %q", got)
				}
				return
			}
			sameLines(t, got, want)
		})
	}
}

func TestOversizedInput(t *testing.T) {
	pad := func(head, tail string, size int) string {
		return head + strings.Repeat("x", size-len(head)-len(tail)) + tail
	}
	head, tail := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"ignored":"`, `"}}}`
	tooLong := func(id string, n int) string {
		return Refusal(id, -32600, fmt.Sprintf("message of %d bytes exceeds the limit of 8388608 bytes; send the content in smaller parts", n))
	}
	for _, c := range []struct{ name, in, want string }{
		{"the longest", pad(head, tail, jsonrpc.MaxMessage), OKText("7", "")},
		{"the longest and blanks", "  " + pad(head, tail, jsonrpc.MaxMessage) + strings.Repeat(" ", 200000) + "\r", OKText("7", "")},
		{"one more", pad(head, tail, jsonrpc.MaxMessage+1), tooLong("7", jsonrpc.MaxMessage+1)},
		{"twice that, blanks not counted", " " + pad(head, tail, 2*jsonrpc.MaxMessage) + strings.Repeat(" ", 99999), tooLong("7", 2*jsonrpc.MaxMessage)},
		{"id at the end", pad(`{"params":{"a":"`, `"},"id" : "x\"1" }`, jsonrpc.MaxMessage+5), tooLong(`"x\"1"`, jsonrpc.MaxMessage+5)},
		{"id at the end and blanks", pad(`{"params":{"a":"`, `"},"id":12}`, jsonrpc.MaxMessage+5) + strings.Repeat(" ", 99999), tooLong("12", jsonrpc.MaxMessage+5)},
		{"id further down", pad(`{"params":{"id":3,"a":"`, `"},"id":12,"x":1}`, jsonrpc.MaxMessage+5), tooLong("null", jsonrpc.MaxMessage+5)},
		{"id of no use", pad(`{"id":1.5,"a":"`, `"}`, jsonrpc.MaxMessage+5), tooLong("null", jsonrpc.MaxMessage+5)},
		{"blanks only", strings.Repeat(" ", 2*jsonrpc.MaxMessage), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := []string{Pong}
			if c.want != "" {
				want = append(want, c.want)
			}
			sameLines(t, exchange(t, c.in+"\n"+Ping, len(want)), want)
		})
	}
}

func TestOversizedOutput(t *testing.T) {
	out := exchange(t, ToolCall("1", "big", `{"n":9000000}`)+"\n"+
		`{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"x://big"}}`+"\n"+
		`{"jsonrpc":"2.0","id":3,"method":"`+strings.Repeat("m", jsonrpc.MaxMessage-50)+`"}`, 3)
	if len(out) > 10000 {
		t.Fatalf("wrote %d bytes", len(out))
	}
	for _, want := range []string{
		`"result":{"content":[{"type":"text","text":"too_large: the result of big is 90000`,
		`"id":2,"error":{"code":-32602,"message":"the result of resources/read is 8388`,
		`"id":3,"error":{"code":-32601,"message":"Method mmm`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%s\nis not in %s", want, out)
		}
	}
}

// The longest id leaves no room for an answer that carries it.
func TestIDTooLongToEcho(t *testing.T) {
	id := `"` + strings.Repeat("i", jsonrpc.MaxMessage-50) + `"`
	sameLines(t, exchange(t, `{"jsonrpc":"2.0","id":`+id+`,"method":"x"}`, 1), []string{Refusal("null", -32601, "Method x not found")})
}

func TestEras(t *testing.T) {
	modern := func(method, meta string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{` + meta + `}}`
	}
	noCaps := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`
	future := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2030-01-01","io.modelcontextprotocol/clientCapabilities":{}}`
	unsupported := `"code":-32022,"message":"unsupported protocol version: \"2030-01-01\" (supported: [2026-07-28 2025-11-25 2025-06-18 2025-03-26 2024-11-05])",` +
		`"data":{"supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"requested":"2030-01-01"}`
	for _, c := range []struct{ name, in, want string }{
		{"legacy results are plain", ToolCall("7", "noop", "{}"), OKText("7", "ok") + "\n"},
		{"modern results say more", modern("tools/call", `"name":"noop",`+ModernMeta), `"resultType":"complete"`},
		{"discover", modern("server/discover", ModernMeta), `"supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"]`},
		{"unknown version", modern("tools/list", future), unsupported},
		{"unknown version, intercepted", modern("skills/list", future), unsupported},
		{"no capabilities", modern("tools/list", noCaps), `"code":-32602,"message":"missing or invalid _meta field io.modelcontextprotocol/clientCapabilities"`},
		{"no capabilities, intercepted", modern("skills/list", noCaps), `"code":-32602,"message":"missing or invalid`},
		{"initialize is gone", modern("initialize", ModernMeta), `"code":-32601`},
		{"ping is gone", modern("ping", ModernMeta), `"code":-32601`},
		{"resources/subscribe is gone", modern("resources/subscribe", `"uri":"x:",`+ModernMeta), `"code":-32601`},
		{"discover is modern", modern("server/discover", ""), `"code":-32601`},
		{"a legacy version in _meta", modern("ping", `"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-06-18"}`), `"result":{}`},
		{"initialize echoes 2024-11-05", Greeting("7", "2024-11-05"), `"protocolVersion":"2024-11-05"`},
		{"initialize echoes 2025-11-25", Greeting("7", "2025-11-25"), `"protocolVersion":"2025-11-25"`},
		{"initialize cannot be modern", Greeting("7", "2026-07-28"), `"protocolVersion":"2025-11-25"`},
		{"initialize, unknown version", Greeting("7", "1999-01-01"), `"protocolVersion":"2025-11-25"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := talk(t, c.in+"\n")
			if !strings.Contains(got, c.want) || strings.Count(got, "\n") != 1 {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestConnectionOfLegacyVersionsOnly(t *testing.T) {
	l := dial(t, func(s *Stdio) { s.Dispatcher.Versions = []string{"2025-11-25", "2024-11-05"} })
	l.Send(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + ModernMeta + `}}`)
	l.Want(`{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"unsupported protocol version: \"2026-07-28\" (supported: [2025-11-25 2024-11-05])",` +
		`"data":{"supported":["2025-11-25","2024-11-05"],"requested":"2026-07-28"}}}`)
	l.End()
}

func TestBatches(t *testing.T) {
	old := Greeting("0", "2025-03-26") + "\n"
	for _, c := range []struct{ name, in, want string }{
		{"two calls", `[` + Ping + `,` + ToolCall("2", "noop", "{}") + `]`, "[" + Pong + "," + OKText("2", "ok") + "]"},
		{"notifications only", `[{"jsonrpc":"2.0","method":"notifications/x"}]`, ""},
		{"empty", ` [ ] `, Refusal("null", -32600, "the batch is empty")},
		{"no object", `[1,` + Ping + `]`, "[" + Refusal("null", -32600, notObj) + "," + Pong + "]"},
		{"initialize inside", `[` + Greeting("5", "2025-03-26") + `]`, "[" + Refusal("5", -32600, "initialize cannot be part of a batch") + "]"},
		{"too many", "[" + strings.Repeat("1,", maxInFlight) + "1]", Refusal("null", -32600, "the batch has 4097 messages; the limit is 4096")},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, got, _ := strings.Cut(talk(t, old+c.in), "\n")
			want := c.want
			if want != "" {
				want += "\n"
			}
			if got == "["+OKText("2", "ok")+","+Pong+"]\n" { // either may be first
				got = want
			}
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestBatchAnswersWithoutItsCancelledCall(t *testing.T) {
	l := dial(t, nil)
	l.Send(Greeting("0", "2025-03-26"))
	l.Next()
	l.Send("[" + Tagged("1", "gate", "a") + "," + Tagged("2", "gate", "b") + "]")
	l.wait("a", "b")
	close(l.Gate("a"))
	l.Send(CancelOf("2"))
	l.Want("[" + OKText("1", "a") + "]")
	l.Send("[" + Tagged("3", "gate", "c") + "]")
	l.wait("c")
	l.Send(CancelOf("3"), Ping)
	l.Want(Pong)
	l.End()
}

func TestBatchStaysWithinOneMessage(t *testing.T) {
	l := dial(t, nil)
	l.Send(Greeting("0", "2025-03-26"))
	l.Next()
	in := "["
	for i := range 5 {
		in += ToolCall(fmt.Sprint(i+1), "big", `{"n":3000000}`) + ","
	}
	l.Send(in + Ping + "]")
	array := l.Next() // the input stays open meanwhile: its end leaves calls 2 s
	l.End()
	if len(array) > jsonrpc.MaxMessage || strings.Count(array, "does not fit into the batch") != 3 {
		t.Errorf("an array of %d bytes, %d refusals", len(array), strings.Count(array, "does not fit into the batch"))
	}
}
