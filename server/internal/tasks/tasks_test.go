package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
	"github.com/perstack-ai/perstack-base/tools"
)

const (
	after = 10 * time.Second
	ttl   = time.Hour
)

// A bout is one call: what it does, and what became of it.
type bout struct {
	held, released int
	ctx            context.Context // of the work
}

// call makes one whose work begins, lasts for a time, and is ended by a cancel.
func (b *bout) call(lasts time.Duration, result string) Call {
	return b.working(func(ctx context.Context) (any, *jsonrpc.Error) {
		tools.TaskOf(ctx).Begin()
		select {
		case <-time.After(lasts):
			return result, nil
		case <-ctx.Done():
			return "cut short", nil
		}
	})
}

func (b *bout) working(work func(context.Context) (any, *jsonrpc.Error)) Call {
	return Call{
		Work: func(ctx context.Context) (any, *jsonrpc.Error) {
			b.ctx = ctx
			return work(ctx)
		},
		Encode: func(result any, fault *jsonrpc.Error) (json.RawMessage, *jsonrpc.Error) {
			if fault != nil {
				return nil, fault
			}
			raw, _ := json.Marshal(result)
			return raw, nil
		},
		Hold:    func() func() { b.held++; return func() { b.released++ } },
		Answers: true,
	}
}

// begun serves a call that must become a task.
func begun(t *testing.T, g *Registry, ctx context.Context, c Call) *View {
	t.Helper()
	result, fault := g.Serve(ctx, c)
	v, ok := result.(*View)
	if !ok || fault != nil || v.ResultType != "task" {
		t.Fatalf("no task: %v %v", result, fault)
	}
	return v
}

func got(t *testing.T, g *Registry, id, status string) *View {
	t.Helper()
	synctest.Wait()
	v, fault := g.Get(id)
	if fault != nil || v.Status != status {
		t.Fatalf("%+v %v, want %s", v, fault, status)
	}
	return v
}

func gone(t *testing.T, g *Registry, id, why string) {
	t.Helper()
	if v, fault := g.Get(id); fault == nil || fault.Code != mcp.INVALID_PARAMS || !strings.Contains(fault.Message, why) {
		t.Fatalf("%+v %v, want %s", v, fault, why)
	}
}

func inBubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// TestWhenCallsBecomeTasks: not before the time, not before the work has begun, and
// only while their client is there.
func TestWhenCallsBecomeTasks(t *testing.T) {
	inBubble(t, "a quick one is answered as ever", func(t *testing.T) {
		var b bout
		result, fault := New(after, ttl).Serve(t.Context(), b.call(after-1, "done"))
		if result != "done" || fault != nil || b.held != 0 {
			t.Error(result, fault, b)
		}
	})
	inBubble(t, "a long one outlives its request", func(t *testing.T) {
		g, ctx, hangUp := registry(t)
		var b bout
		start := time.Now()
		v := begun(t, g, ctx, b.call(time.Minute, "done"))
		if time.Since(start) != after || v.Status != working || v.TTL != nil || v.PollInterval != 1000 {
			t.Errorf("%+v after %v", v, time.Since(start))
		}
		hangUp()
		got(t, g, v.TaskID, working)
		time.Sleep(time.Minute)
		v = got(t, g, v.TaskID, completed)
		if string(v.Outcome) != `"done"` || *v.TTL != (ttl+time.Minute).Milliseconds() || b.held != 1 || b.released != 1 {
			t.Errorf("%+v %+v", v, b)
		}
	})
	inBubble(t, "at once", func(t *testing.T) {
		g := New(-1, ttl)
		var b bout
		start := time.Now()
		v := begun(t, g, t.Context(), b.call(time.Minute, "done"))
		if time.Since(start) != 0 {
			t.Error(time.Since(start))
		}
		_ = g.Cancel(v.TaskID)
	})
	inBubble(t, "not before the work begins", func(t *testing.T) {
		result, _ := New(-1, ttl).Serve(t.Context(), (&bout{}).working(func(context.Context) (any, *jsonrpc.Error) {
			time.Sleep(time.Hour) // a question that comes first
			return "asked", nil
		}))
		if result != "asked" {
			t.Error(result)
		}
	})
	inBubble(t, "a client that hangs up before ends the work", func(t *testing.T) {
		g, ctx, hangUp := registry(t)
		time.AfterFunc(after-1, hangUp)
		var b bout
		start := time.Now()
		if result, _ := g.Serve(ctx, b.call(time.Hour, "done")); result != "cut short" || time.Since(start) != after-1 || b.held != 0 {
			t.Error(result, time.Since(start))
		}
	})
	inBubble(t, "not when the server is about to end", func(t *testing.T) {
		g := New(-1, ttl)
		g.Drain()
		if result, _ := g.Serve(t.Context(), (&bout{}).call(time.Minute, "done")); result != "done" {
			t.Error(result)
		}
	})
}

func registry(t *testing.T) (g *Registry, ctx context.Context, hangUp func()) {
	ctx, hangUp = context.WithCancel(t.Context())
	t.Cleanup(hangUp)
	return New(after, ttl), ctx, hangUp
}

// TestExpiry: a result stays for its time, and no id means anything afterwards.
func TestExpiry(t *testing.T) {
	inBubble(t, "a result", func(t *testing.T) {
		g, ctx, _ := registry(t)
		v := begun(t, g, ctx, (&bout{}).call(time.Minute, "done"))
		time.Sleep(50*time.Second + ttl - 1)
		got(t, g, v.TaskID, completed)
		time.Sleep(2 * time.Nanosecond)
		synctest.Wait()
		gone(t, g, v.TaskID, "unknown or has expired")
		empty(t, g)
	})
	g := New(after, ttl)
	gone(t, g, "task-0000dead-"+strings.Repeat("0", 32), "belongs to another server")
	gone(t, g, "task-"+g.instance()+"-"+strings.Repeat("0", 32), "unknown or has expired")
	for _, id := range []string{"", "task", "task--", "x", strings.Repeat("task-", 1<<20)} {
		gone(t, g, id, "unknown or has expired")
	}
}

// TestBounds: neither tasks nor their results pile up.
func TestBounds(t *testing.T) {
	inBubble(t, "those that run", func(t *testing.T) {
		g := New(-1, ttl)
		var ids []string
		for range maxRunning {
			ids = append(ids, begun(t, g, t.Context(), (&bout{}).call(time.Hour, "done")).TaskID)
		}
		if result, _ := g.Serve(t.Context(), (&bout{}).call(time.Minute, "waited for")); result != "waited for" {
			t.Error(result)
		}
		time.AfterFunc(10*time.Second, func() { _ = g.Cancel(ids[0]) })
		begun(t, g, t.Context(), (&bout{}).call(time.Minute, "done")) // as soon as there is room
		got(t, g, ids[0], cancelled)
		result, _ := g.Serve(t.Context(), (&bout{}).working(func(ctx context.Context) (any, *jsonrpc.Error) {
			_, err := tools.TaskOf(ctx).RequestElicitation(ctx, mcp.ElicitationRequest{})
			return err.Error(), nil
		}))
		if result != errNoTask.Error() {
			t.Error(result)
		}
		g.Close()
		g.Wait(time.Second)
		gone(t, g, ids[1], "unknown")
		empty(t, g)
	})
	inBubble(t, "results", func(t *testing.T) {
		g := New(-1, ttl)
		large := strings.Repeat("x", maxBytes/4)
		var ids []string
		for range 5 {
			ids = append(ids, begun(t, g, t.Context(), (&bout{}).call(time.Second, large)).TaskID)
			time.Sleep(2 * time.Second)
		}
		for i, id := range ids {
			if i < 2 {
				gone(t, g, id, "unknown or has expired")
				continue
			}
			got(t, g, id, completed)
		}
		for range maxEnded {
			begun(t, g, t.Context(), (&bout{}).call(time.Second, ""))
			time.Sleep(2 * time.Second)
		}
		synctest.Wait()
		g.mu.Lock()
		defer g.mu.Unlock()
		if len(g.ended) > maxEnded || len(g.tasks) > maxEnded || g.bytes > 2*maxEnded {
			t.Errorf("%d results of %d bytes are kept", len(g.ended), g.bytes)
		}
	})
}

// TestCancel: it ends the work, and changes nothing about work that is over.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(-1, ttl)
		var b bout
		v := begun(t, g, t.Context(), b.call(time.Hour, "done"))
		for range 2 {
			if fault := g.Cancel(v.TaskID); fault != nil {
				t.Error(fault)
			}
		}
		if v = got(t, g, v.TaskID, cancelled); v.Outcome != nil || b.ctx.Err() == nil || b.released != 1 {
			t.Errorf("%+v %+v", v, b)
		}
		v = begun(t, g, t.Context(), b.call(time.Second, "done"))
		time.Sleep(time.Second)
		synctest.Wait()
		if fault := g.Cancel(v.TaskID); fault != nil {
			t.Error(fault)
		}
		got(t, g, v.TaskID, completed)
		v = begun(t, g, t.Context(), b.working(func(ctx context.Context) (any, *jsonrpc.Error) {
			tools.TaskOf(ctx).Begin()
			time.Sleep(time.Second)
			return nil, &jsonrpc.Error{Code: 7, Message: "broken"}
		}))
		time.Sleep(time.Second)
		if v = got(t, g, v.TaskID, failed); v.Fault.Code != 7 || v.StatusMessage != "broken" || v.Outcome != nil {
			t.Errorf("%+v", v)
		}
	})
}

// TestQuestions: a task waits with them for its client, who may answer them one by one.
func TestQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(after, ttl)
		start := time.Now()
		v := begun(t, g, t.Context(), (&bout{}).working(func(ctx context.Context) (any, *jsonrpc.Error) {
			said := make(chan string, 2)
			for range 2 {
				go func() {
					r, err := tools.TaskOf(ctx).RequestElicitation(ctx, mcp.ElicitationRequest{Params: mcp.ElicitationParams{Message: "sure?"}})
					said <- fmt.Sprint(r.Action, err)
				}()
			}
			return <-said + " " + <-said, nil
		}))
		if time.Since(start) != 0 {
			t.Errorf("asked after %v", time.Since(start))
		}
		if v = got(t, g, v.TaskID, inputRequired); len(v.Questions) != 2 {
			t.Fatalf("%+v", v)
		}
		for _, wrong := range []string{`{"q1":5}`, `{"q1":{}}`, `{"q2":{"action":"accept"},"q1":null}`} {
			if fault := g.Update(v.TaskID, responses(wrong)); fault == nil || fault.Code != mcp.INVALID_PARAMS {
				t.Error(wrong, fault)
			}
		}
		if fault := g.Update(v.TaskID, responses(`{"q7":5,"q2":{"action":"decline"}}`)); fault != nil {
			t.Error(fault)
		}
		if v = got(t, g, v.TaskID, inputRequired); len(v.Questions) != 1 || v.Questions["q1"] == nil {
			t.Fatalf("%+v", v)
		}
		for range 2 { // the second answers nothing
			if fault := g.Update(v.TaskID, responses(`{"q1":{"action":"accept"}}`)); fault != nil {
				t.Error(fault)
			}
		}
		if v = got(t, g, v.TaskID, completed); !strings.Contains(string(v.Outcome), "accept") || !strings.Contains(string(v.Outcome), "decline") {
			t.Errorf("%+v", v)
		}
	})
	inBubble(t, "of a client that cannot be asked", func(t *testing.T) {
		c := (&bout{}).working(func(ctx context.Context) (any, *jsonrpc.Error) {
			_, err := tools.TaskOf(ctx).RequestElicitation(ctx, mcp.ElicitationRequest{})
			return err.Error(), nil
		})
		c.Answers = false
		g := New(after, ttl)
		if v := got(t, g, begun(t, g, t.Context(), c).TaskID, completed); !strings.Contains(string(v.Outcome), "cannot be asked") {
			t.Errorf("%+v", v)
		}
	})
}

func responses(text string) (all map[string]json.RawMessage) {
	_ = json.Unmarshal([]byte(text), &all)
	return all
}

// TestWatch: a subscription is told how its tasks are, then of every change.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(-1, ttl)
		line := "first"
		var mu sync.Mutex
		v := begun(t, g, t.Context(), (&bout{}).working(func(ctx context.Context) (any, *jsonrpc.Error) {
			task := tools.TaskOf(ctx)
			task.Follow(func() string { mu.Lock(); defer mu.Unlock(); return line })
			task.Begin()
			time.Sleep(5 * time.Second)
			mu.Lock()
			line = "second"
			mu.Unlock()
			time.Sleep(5 * time.Second)
			return "done", nil
		}))
		if known := g.Known([]string{"x", v.TaskID, v.TaskID}); len(known) != 1 {
			t.Errorf("%v", known)
		}
		var told []string
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			g.Watch(ctx, []string{v.TaskID}, func(v *View) { told = append(told, v.Status+" "+v.StatusMessage) })
		}()
		time.Sleep(time.Minute)
		stop()
		<-ended
		if got := strings.Join(told, ", "); got != "working first, working second, completed second" {
			t.Error(got)
		}
		g.Watch(ctx, []string{v.TaskID, "unknown"}, func(*View) {}) // ends with ctx
	})
}

// TestRaces lets ends, cancels, looks and subscriptions meet.
func TestRaces(t *testing.T) {
	g := New(-1, time.Millisecond)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			result, _ := g.Serve(ctx, (&bout{}).call(time.Duration(rand.IntN(1000))*time.Microsecond, "done"))
			v, ok := result.(*View)
			if !ok {
				return
			}
			all.Go(func() { _ = g.Cancel(v.TaskID) })
			all.Go(func() { _, _ = g.Get(v.TaskID) })
			all.Go(func() { _ = g.Update(v.TaskID, responses(`{"q1":{"action":"accept"}}`)) })
			all.Go(func() { g.Watch(ctx, g.Known([]string{v.TaskID}), func(*View) {}) })
		})
	}
	time.AfterFunc(20*time.Millisecond, stop)
	all.Wait()
	g.Close()
	g.Wait(10 * time.Second)
	empty(t, g)
}

// empty wants nothing to be kept.
func empty(t *testing.T, g *Registry) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.tasks)+g.running+len(g.ended)+g.bytes != 0 {
		t.Errorf("%d tasks are left, %d run, %d have ended with %d bytes", len(g.tasks), g.running, len(g.ended), g.bytes)
	}
}
