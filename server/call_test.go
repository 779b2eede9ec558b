package server

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
)

func TestIDsInFlight(t *testing.T) {
	l := dial(t, nil)
	l.send(tagged("7", "gate", "a"))
	l.wait("a")
	l.send(toolCall("7", "noop", "{}"))
	l.want(refusal("7", -32600, "request id 7 is already in flight"))
	l.send(toolCall(`"7"`, "noop", "{}")) // another id
	l.want(okText(`"7"`, "ok"))
	close(l.gate("a"))
	l.want(okText("7", "a"))
	l.send(toolCall("7", "noop", "{}")) // free again
	l.want(okText("7", "ok"))
	l.end()
}

func TestCancel(t *testing.T) {
	t.Run("running", func(t *testing.T) {
		l := dial(t, nil)
		l.send(tagged("7", "gate", "a"))
		l.wait("a")
		l.send(cancelOf("7"), toolCall("7", "noop", "{}")) // the id is free at once
		l.want(okText("7", "ok"))
		l.end()
		if l.seen() != "+a -a" {
			t.Errorf("the call saw %q", l.seen())
		}
	})
	t.Run("running and deaf", func(t *testing.T) {
		l := dial(t, nil)
		l.send(tagged("7", "deaf", "a"))
		l.wait("a")
		l.send(cancelOf("7"), ping)
		l.want(pong)
		close(l.gate("a"))
		l.end()
	})
	t.Run("queued", func(t *testing.T) {
		l := dial(t, nil)
		l.send(tagged("11", "lane", "a"), tagged("12", "lane", "b"), tagged("13", "lane", "c"))
		l.wait("a")
		l.send(cancelOf("12"), ping)
		l.want(pong)
		close(l.gate("a"))
		l.want(okText("11", "a"))
		l.wait("c")
		close(l.gate("c"))
		l.want(okText("13", "c"))
		l.end()
		if l.seen() != "+a -a +c -c" {
			t.Errorf("the lane saw %q", l.seen())
		}
	})
	t.Run("a string is not a number", func(t *testing.T) {
		l := dial(t, nil)
		l.send(tagged("7", "gate", "a"))
		l.wait("a")
		l.send(cancelOf(`"7"`), ping)
		l.want(pong)
		close(l.gate("a"))
		l.want(okText("7", "a"))
		l.end()
	})
}

// Without its lane, the same three calls run side by side.
func TestLanes(t *testing.T) {
	l := dial(t, nil)
	l.send(tagged("1", "lane", "a"), tagged("2", "lane", "b"), tagged("3", "lane", "c"))
	l.wait("a")
	l.send(tagged("4", "gate", "x"), tagged("5", "gate", "y")) // neither waits for the lane
	l.wait("x", "y")
	if seen := l.seen(); strings.Contains(seen, "+b") || strings.Contains(seen, "+c") {
		t.Fatalf("the lane has started %s", seen)
	}
	for i, tag := range []string{"a", "b", "c"} {
		close(l.gate(tag))
		l.want(okText(fmt.Sprint(i+1), tag))
	}
	close(l.gate("y"))
	l.want(okText("5", "y"))
	close(l.gate("x"))
	l.want(okText("4", "x"))
	l.end()
	lane := strings.NewReplacer("+x ", "", "+y ", "", " -x", "", " -y", "").Replace(l.seen())
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
			fmt.Fprintln(&in, toolCall(fmt.Sprint(i), "echo", fmt.Sprintf(`{"text":"%d"}`, i)))
			want = append(want, okText(fmt.Sprint(i), fmt.Sprint(i)))
		} else {
			fmt.Fprintln(&in, toolCall(fmt.Sprintf(`"%d"`, i), "noop", "{}"))
			want = append(want, okText(fmt.Sprintf(`"%d"`, i), "ok"))
		}
	}
	sameLines(t, talk(t, in.String()), want)
}

func TestTooManyInFlight(t *testing.T) {
	l := dial(t, nil)
	go func() {
		for i := range maxInFlight {
			l.in.Write([]byte(tagged(fmt.Sprint(i), "deaf", "a") + "\n"))
		}
		l.in.Write([]byte(cancelOf("5") + "\n")) // its handler still holds the slot
		l.in.Write([]byte(ping[:len(ping)-1] + `,"x":0}` + "\n"))
		l.in.Write([]byte(toolCall(`"last"`, "noop", "{}") + "\n"))
	}()
	l.want(refusal("1", -32600, "request id 1 is already in flight"),
		refusal(`"last"`, -32600, "too many requests in flight (4096)"))
	for range maxInFlight {
		within(t, l.started, "a call to start")
	}
	close(l.gate("a"))
	for range maxInFlight - 1 {
		if got := l.next(); !strings.Contains(got, `"text":"a"`) {
			t.Fatal(got)
		}
	}
	l.end()
}

func TestNotifierGoesAheadOfTheResult(t *testing.T) {
	l := dial(t, nil)
	for i := range 50 {
		id := fmt.Sprint(i)
		l.send(toolCall(id, "notes", `{"n":2}`))
		l.want(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":0}}`,
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}`, okText(id, "ok"))
	}
	l.end()
}

// A handler that goes on after its cancel, or after its result, is not heard.
func TestNotifierIsSilentAfterTheEnd(t *testing.T) {
	b := newBench()
	var sent []string
	c, err := openConn(context.Background(), b.config().connConfig, "s", func(line []byte) error {
		sent = append(sent, string(line))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for _, finish := range []func(*call){
		func(k *call) { c.cancel(k.id) },
		func(k *call) { c.answer(k, map[string]any{}, nil) },
	} {
		m := readMessage([]byte(ping))
		k := &call{}
		if fault := c.admit(k, &m); fault != nil {
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
		out := talk(t, greeting("1", "2025-06-18")+"\n"+toolCall("2", "noop", "{}")+"\n"+cancelOf("1")+"\n")
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
	l.send(toolCall("1", "ask", "{}")) // the client has not said that it can be asked
	l.want(errText("1", "session does not support elicitation"))
	l.send(greeting("0", "2025-11-25"))
	l.next()
	l.send(toolCall("1", "ask", "{}"))
	l.want(question(1))
	l.send(`{"jsonrpc":"2.0","id":"srv-9","result":{"action":"decline"}}`, `{"jsonrpc":"2.0","id":"srv-1","result":{"action":"accept"}}`)
	l.want(okText("1", "accept"))
	l.send(toolCall("2", "ask", "{}"))
	l.want(question(2))
	l.send(`{"jsonrpc":"2.0","id":"srv-2","error":{"code":-32601,"message":"no"}}`)
	l.want(errText("2", "the client has refused to answer"))
	l.send(toolCall("3", "ask", "{}"))
	l.want(question(3))
	l.send(cancelOf("3"))
	l.want(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"srv-3"}}`)
	l.send(toolCall("4", "ask", "{}"))
	l.want(question(4))
	l.end(errText("4", "the client has closed the connection"))
}

func TestModernRequestsLeaveTheLegacySessionAlone(t *testing.T) {
	l := dial(t, nil)
	l.send(greeting("0", "2025-11-25"))
	l.next()
	l.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"noop",` + modernMeta + `}}`)
	l.next()
	l.send(toolCall("2", "ask", "{}")) // still a client that can be asked
	if got := l.next(); !strings.Contains(got, "elicitation/create") {
		t.Error(got)
	}
	l.send(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"ask",` + modernMeta + `}}`)
	if got := l.next(); !strings.Contains(got, `"isError":true`) {
		t.Error("a modern client was asked: " + got)
	}
	l.send(`{"jsonrpc":"2.0","id":"srv-1","result":{"action":"cancel"}}`)
	l.want(okText("2", "cancel"))
	l.end()
}

func TestListChanged(t *testing.T) {
	const changed = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"`
	change := func(l *line) { l.AddTool(mcp.NewTool("new"), nil) }

	t.Run("nothing unasked before initialize", func(t *testing.T) {
		l := dial(t, nil)
		l.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"noop",` + modernMeta + `}}`)
		l.next()
		change(l)
		l.send(ping)
		l.want(pong)
		l.end()
	})
	t.Run("after initialize", func(t *testing.T) {
		l := dial(t, nil)
		l.send(greeting("0", "2025-11-25"))
		l.next()
		l.send(ping)
		l.want(pong)
		change(l)
		l.want(changed + `,"params":{}}`)
		l.end()
	})
	t.Run("subscribed", func(t *testing.T) {
		l := dial(t, nil)
		listen := func(id, what string) {
			l.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"subscriptions/listen","params":{"notifications":{` + what + `},` + modernMeta + `}}`)
		}
		tag := `"_meta":{"io.modelcontextprotocol/subscriptionId":`
		listen("9007199254740993", `"toolsListChanged":true`)
		l.want(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{` + tag + `9007199254740993},"notifications":{"toolsListChanged":true}}}`)
		listen(`"r"`, `"resourcesListChanged":true`)
		l.want(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{` + tag + `"r"},"notifications":{"resourcesListChanged":true}}}`)
		change(l)
		l.want(changed + `,"params":{` + tag + `9007199254740993}}}`)
		l.AddResource(mcp.NewResource("x://new", "new"), nil)
		l.want(`{"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{` + tag + `"r"}}}`)
		l.send(cancelOf("9007199254740993"))
		l.send(ping)
		l.want(pong)
		l.send(`{"jsonrpc":"2.0","id":3,"method":"subscriptions/listen","params":{"notifications":{},` + modernMeta + `}}`)
		l.want(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{` + tag + `3},"notifications":{}}}`)
		if got := l.next(); !strings.Contains(got, `"id":3,"result"`) || !strings.Contains(got, tag[9:]+`3`) {
			t.Error(got)
		}
		l.end() // the open one is closed without an answer
	})
}
