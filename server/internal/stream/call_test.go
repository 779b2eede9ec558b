package stream

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/perstack-ai/perstack-base/server/internal/dispatch"
	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
	. "github.com/perstack-ai/perstack-base/server/internal/servertest"
)

func TestIDsInFlight(t *testing.T) {
	l := dial(t, nil)
	l.Send(Tagged("7", "gate", "a"))
	l.wait("a")
	l.Send(ToolCall("7", "noop", "{}"))
	l.Want(Refusal("7", -32600, "request id 7 is already in flight"))
	l.Send(ToolCall(`"7"`, "noop", "{}")) // another id
	l.Want(OKText(`"7"`, "ok"))
	close(l.Gate("a"))
	l.Want(OKText("7", "a"))
	l.Send(ToolCall("7", "noop", "{}")) // free again
	l.Want(OKText("7", "ok"))
	l.End()
}

func TestCancel(t *testing.T) {
	t.Run("running", func(t *testing.T) {
		l := dial(t, nil)
		l.Send(Tagged("7", "gate", "a"))
		l.wait("a")
		l.Send(CancelOf("7"), ToolCall("7", "noop", "{}")) // the id is free at once
		l.Want(OKText("7", "ok"))
		l.End()
		if l.Seen() != "+a -a" {
			t.Errorf("the call saw %q", l.Seen())
		}
	})
	t.Run("running and deaf", func(t *testing.T) {
		l := dial(t, nil)
		l.Send(Tagged("7", "deaf", "a"))
		l.wait("a")
		l.Send(CancelOf("7"), Ping)
		l.Want(Pong)
		close(l.Gate("a"))
		l.End()
	})
	t.Run("queued", func(t *testing.T) {
		l := dial(t, nil)
		l.Send(Tagged("11", "lane", "a"), Tagged("12", "lane", "b"), Tagged("13", "lane", "c"))
		l.wait("a")
		l.Send(CancelOf("12"), Ping)
		l.Want(Pong)
		close(l.Gate("a"))
		l.Want(OKText("11", "a"))
		l.wait("c")
		close(l.Gate("c"))
		l.Want(OKText("13", "c"))
		l.End()
		if l.Seen() != "+a -a +c -c" {
			t.Errorf("the lane saw %q", l.Seen())
		}
	})
	t.Run("a string is not a number", func(t *testing.T) {
		l := dial(t, nil)
		l.Send(Tagged("7", "gate", "a"))
		l.wait("a")
		l.Send(CancelOf(`"7"`), Ping)
		l.Want(Pong)
		close(l.Gate("a"))
		l.Want(OKText("7", "a"))
		l.End()
	})
}

// Without its lane, the same three calls run side by side.
func TestLanes(t *testing.T) {
	l := dial(t, nil)
	l.Send(Tagged("1", "lane", "a"), Tagged("2", "lane", "b"), Tagged("3", "lane", "c"))
	l.wait("a")
	l.Send(Tagged("4", "gate", "x"), Tagged("5", "gate", "y")) // neither waits for the lane
	l.wait("x", "y")
	if seen := l.Seen(); strings.Contains(seen, "+b") || strings.Contains(seen, "+c") {
		t.Fatalf("the lane has started %s", seen)
	}
	for i, tag := range []string{"a", "b", "c"} {
		close(l.Gate(tag))
		l.Want(OKText(fmt.Sprint(i+1), tag))
	}
	close(l.Gate("y"))
	l.Want(OKText("5", "y"))
	close(l.Gate("x"))
	l.Want(OKText("4", "x"))
	l.End()
	lane := strings.NewReplacer("+x ", "", "+y ", "", " -x", "", " -y", "").Replace(l.Seen())
	if lane != "+a -a +b -b +c -c" {
		t.Errorf("the lane saw %q", lane)
	}
}

func TestPipelined(t *testing.T) {
	var in strings.Builder
	var want []string
	for i := range 300 {
		tool := []string{"echo", "lane"}[i%2]
		if tool == "echo" {
			fmt.Fprintln(&in, ToolCall(fmt.Sprint(i), "echo", fmt.Sprintf(`{"text":"%d"}`, i)))
			want = append(want, OKText(fmt.Sprint(i), fmt.Sprint(i)))
		} else {
			fmt.Fprintln(&in, ToolCall(fmt.Sprintf(`"%d"`, i), "noop", "{}"))
			want = append(want, OKText(fmt.Sprintf(`"%d"`, i), "ok"))
		}
	}
	sameLines(t, talk(t, in.String()), want)
}

func TestTooManyInFlight(t *testing.T) {
	l := dial(t, nil)
	go func() {
		for i := range maxInFlight {
			l.In.Write([]byte(Tagged(fmt.Sprint(i), "deaf", "a") + "\n"))
		}
		l.In.Write([]byte(CancelOf("5") + "\n")) // its handler still holds the slot
		l.In.Write([]byte(Ping[:len(Ping)-1] + `,"x":0}` + "\n"))
		l.In.Write([]byte(ToolCall(`"last"`, "noop", "{}") + "\n"))
	}()
	l.Want(Refusal("1", -32600, "request id 1 is already in flight"),
		Refusal(`"last"`, -32600, "too many requests in flight (4096)"))
	for range maxInFlight {
		Within(t, l.Started, "a call to start")
	}
	close(l.Gate("a"))
	for range maxInFlight - 1 {
		if got := l.Next(); !strings.Contains(got, `"text":"a"`) {
			t.Fatal(got)
		}
	}
	l.End()
}

func TestNotifierGoesAheadOfTheResult(t *testing.T) {
	l := dial(t, nil)
	for i := range 50 {
		id := fmt.Sprint(i)
		l.Send(ToolCall(id, "notes", `{"n":2}`))
		l.Want(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":0}}`,
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}`, OKText(id, "ok"))
	}
	l.End()
}

// A handler that goes on after its cancel, or after its result, is not heard.
func TestNotifierIsSilentAfterTheEnd(t *testing.T) {
	b := New()
	var sent []string
	c, err := Open(context.Background(), b.Dispatcher(), "s", func(line []byte) error {
		sent = append(sent, string(line))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, finish := range []func(*Call){
		func(k *Call) { c.cancel(k.ID) },
		func(k *Call) { c.answer(k, map[string]any{}, nil) },
	} {
		m, _ := jsonrpc.Read([]byte(Ping))
		k := &Call{Request: dispatch.NewRequest(&m)}
		if fault := c.admit(k); fault != nil {
			t.Fatal(fault)
		}
		c.notify(k, "notifications/x", nil)
		before := len(sent)
		if before == 0 {
			t.Fatal("a live call's notification was dropped")
		}
		finish(k)
		after := len(sent)
		c.notify(k, "notifications/x", nil)
		if len(sent) != after {
			t.Error("a notification followed the end of its call")
		}
		c.release(k)
	}
}

func TestInitializeIsAnsweredFirst(t *testing.T) {
	for range 20 {
		out := talk(t, Greeting("1", "2025-06-18")+"\n"+ToolCall("2", "noop", "{}")+"\n"+CancelOf("1")+"\n")
		first, _, _ := strings.Cut(out, "\n")
		if !strings.Contains(first, `"protocolVersion":"2025-06-18"`) {
			t.Fatalf("first came %s", first)
		}
	}
}

func TestElicitation(t *testing.T) {
	question := func(n int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":"srv-%d","method":"elicitation/create","params":{"message":"really?","requestedSchema":{"properties":{},"type":"object"}}}`, n)
	}
	l := dial(t, nil)
	l.Send(ToolCall("1", "ask", "{}")) // the client has not said that it can be asked
	l.Want(ErrText("1", "session does not support elicitation"))
	l.Send(Greeting("0", "2025-11-25"))
	l.Next()
	l.Send(ToolCall("1", "ask", "{}"))
	l.Want(question(1))
	l.Send(`{"jsonrpc":"2.0","id":"srv-9","result":{"action":"decline"}}`, `{"jsonrpc":"2.0","id":"srv-1","result":{"action":"accept"}}`)
	l.Want(OKText("1", "accept"))
	l.Send(ToolCall("2", "ask", "{}"))
	l.Want(question(2))
	l.Send(`{"jsonrpc":"2.0","id":"srv-2","error":{"code":-32601,"message":"no"}}`)
	l.Want(ErrText("2", "the client has refused to answer"))
	l.Send(ToolCall("3", "ask", "{}"))
	l.Want(question(3))
	l.Send(CancelOf("3"))
	l.Want(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"srv-3"}}`)
	l.Send(ToolCall("4", "ask", "{}"))
	l.Want(question(4))
	l.End(ErrText("4", "the client has closed the connection"))
}

func TestModernRequestsLeaveTheLegacySessionAlone(t *testing.T) {
	l := dial(t, nil)
	l.Send(Greeting("0", "2025-11-25"))
	l.Next()
	l.Send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"noop",` + ModernMeta + `}}`)
	l.Next()
	l.Send(ToolCall("2", "ask", "{}")) // still a client that can be asked
	if got := l.Next(); !strings.Contains(got, "elicitation/create") {
		t.Error(got)
	}
	l.Send(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"ask",` + ModernMeta + `}}`)
	if got := l.Next(); !strings.Contains(got, `"isError":true`) {
		t.Error("a modern client was asked: " + got)
	}
	l.Send(`{"jsonrpc":"2.0","id":"srv-1","result":{"action":"cancel"}}`)
	l.Want(OKText("2", "cancel"))
	l.End()
}

func TestListChanged(t *testing.T) {
	const changed = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"`
	change := func(l *line) { l.AddTool(mcp.NewTool("new"), nil) }

	t.Run("nothing unasked before initialize", func(t *testing.T) {
		l := dial(t, nil)
		l.Send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"noop",` + ModernMeta + `}}`)
		l.Next()
		change(l)
		l.Send(Ping)
		l.Want(Pong)
		l.End()
	})
	t.Run("after initialize", func(t *testing.T) {
		l := dial(t, nil)
		l.Send(Greeting("0", "2025-11-25"))
		l.Next()
		l.Send(Ping)
		l.Want(Pong)
		change(l)
		l.Want(changed + `,"params":{}}`)
		l.End()
	})
	t.Run("subscribed", func(t *testing.T) {
		l := dial(t, nil)
		listen := func(id, what string) {
			l.Send(`{"jsonrpc":"2.0","id":` + id + `,"method":"subscriptions/listen","params":{"notifications":{` + what + `},` + ModernMeta + `}}`)
		}
		tag := `"_meta":{"io.modelcontextprotocol/subscriptionId":`
		listen("9007199254740993", `"toolsListChanged":true`)
		l.Want(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{` + tag + `9007199254740993},"notifications":{"toolsListChanged":true}}}`)
		listen(`"r"`, `"resourcesListChanged":true`)
		l.Want(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{` + tag + `"r"},"notifications":{"resourcesListChanged":true}}}`)
		change(l)
		l.Want(changed + `,"params":{` + tag + `9007199254740993}}}`)
		l.AddResource(mcp.NewResource("x://new", "new"), nil)
		l.Want(`{"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{` + tag + `"r"}}}`)
		l.Send(CancelOf("9007199254740993"))
		l.Send(Ping)
		l.Want(Pong)
		l.Send(`{"jsonrpc":"2.0","id":3,"method":"subscriptions/listen","params":{"notifications":{},` + ModernMeta + `}}`)
		l.Want(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{` + tag + `3},"notifications":{}}}`)
		if got := l.Next(); !strings.Contains(got, `"id":3,"result"`) || !strings.Contains(got, tag[9:]+`3`) {
			t.Error(got)
		}
		l.End() // the open one is closed without an answer
	})
}
