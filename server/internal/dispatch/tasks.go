package dispatch

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
	"github.com/perstack-ai/perstack-base/server/internal/tasks"
)

// What clients do with tasks. The two that are removed are of the revision 2025-11-25.
const (
	methodTasksGet    = "tasks/get"
	methodTasksUpdate = "tasks/update"
	methodTasksCancel = "tasks/cancel"
	methodTasksList   = "tasks/list"
	methodTasksResult = "tasks/result"
)

// taskRoom is what the answer of tasks/get needs beside the result that is in it.
const taskRoom = 16 << 10

// Removed reports whether r asks for what an older revision had: nothing else about
// it is looked at.
func (r *Request) Removed() bool {
	return r.Modern && (r.Method == methodTasksList || r.Method == methodTasksResult)
}

func methodNotFound(method string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: mcp.METHOD_NOT_FOUND, Message: method + " does not exist in this protocol version; tasks/get has the result of a task"}
}

// TaskName returns the id of the task that r is about; ok says that its headers
// must name it.
func (r *Request) TaskName() (id string, ok bool) {
	switch r.Method {
	case methodTasksGet, methodTasksUpdate, methodTasksCancel:
		var params struct {
			ID string `json:"taskId"`
		}
		_ = json.Unmarshal(r.Params, &params) // a value that is not a string is not an id
		return params.ID, true
	}
	return "", false
}

// capabilities are those of the client, as the request says.
func (r *Request) capabilities() map[string]any {
	meta, _ := r.params.Meta.(map[string]any)
	all, _ := meta[mcp.MetaKeyClientCapabilities].(map[string]any)
	return all
}

// takesTasks reports whether the client declares the extension.
func (r *Request) takesTasks() bool {
	extensions, _ := r.capabilities()["extensions"].(map[string]any)
	_, ok := extensions[tasks.Extension].(map[string]any)
	return ok
}

// needsTasks refuses a request of a client that does not.
func (r *Request) needsTasks() *jsonrpc.Error {
	if r.takesTasks() {
		return nil
	}
	need := map[string]any{"extensions": map[string]any{tasks.Extension: map[string]any{}}}
	return &jsonrpc.Error{
		Code:    mcp.MISSING_REQUIRED_CLIENT_CAPABILITY,
		Message: r.Method + " is for clients that declare the extension " + tasks.Extension + " in the capabilities of the request",
		Data:    map[string]any{"requiredCapabilities": need},
	}
}

// becomesTask reports whether r may be answered by a task.
func (d *Dispatcher) becomesTask(r *Request) bool {
	return r.Modern && r.Method == MethodToolsCall && d.Tasks != nil && r.takesTasks() && d.Tools.Lasts(r.Tool)
}

// serveTask serves a call that may become a task.
func (d *Dispatcher) serveTask(ctx context.Context, r *Request, client mcpserver.ClientSession) (any, *jsonrpc.Error) {
	_, answers := r.capabilities()["elicitation"].(map[string]any)
	result, fault := d.Tasks.Serve(ctx, tasks.Call{
		Work: func(ctx context.Context) (any, *jsonrpc.Error) {
			result, fault := d.answer(ctx, r, client)
			d.endSpan(ctx, r, client, result, fault)
			return result, fault
		},
		Encode:  r.encodeInner,
		Hold:    func() (release func()) { return leaseOf(ctx).Take() },
		Answers: answers,
	})
	if v, ok := result.(*tasks.View); ok {
		Decorate(&v.Result, d.Identity)
	}
	return result, fault
}

// encodeInner makes the result, or the error, that an answer of r would have: the
// result of tasks/get has room for it.
func (r *Request) encodeInner(result any, fault *jsonrpc.Error) (json.RawMessage, *jsonrpc.Error) {
	line, sent := r.Encode(result, fault)
	if sent != nil {
		return nil, sent
	}
	if len(line) > jsonrpc.MaxMessage-taskRoom {
		line, sent = r.Encode(r.unsendable(jsonrpc.NewTooLarge(len(line))))
	}
	m, broken := jsonrpc.Read(line)
	if sent == nil {
		sent = broken
	}
	return m.Result, sent
}

// answerTask answers what is asked about tasks; handled false says that r is about
// something else.
func (d *Dispatcher) answerTask(r *Request) (result any, fault *jsonrpc.Error, handled bool) {
	id, ok := r.TaskName()
	if !ok || !r.Modern || d.Tasks == nil {
		return nil, nil, false
	}
	if fault := r.needsTasks(); fault != nil {
		return nil, fault, true
	}
	if id == "" {
		return nil, jsonrpc.InvalidParams("params.taskId must be a string: the taskId of a task"), true
	}
	var done mcp.Result
	switch r.Method {
	case methodTasksGet:
		v, fault := d.Tasks.Get(id)
		if fault != nil {
			return nil, fault, true
		}
		Decorate(&v.Result, d.Identity)
		return v, nil, true
	case methodTasksCancel:
		fault = d.Tasks.Cancel(id)
	case methodTasksUpdate:
		fault = d.updateTask(r, id)
	}
	Decorate(&done, d.Identity)
	return done, fault, true
}

func (d *Dispatcher) updateTask(r *Request, id string) *jsonrpc.Error {
	var params struct {
		Responses map[string]json.RawMessage `json:"inputResponses"`
	}
	if json.Unmarshal(r.Params, &params) != nil || params.Responses == nil {
		return jsonrpc.InvalidParams("params.inputResponses must be an object: an answer for each key of inputRequests")
	}
	return d.Tasks.Update(id, params.Responses)
}

// watchedTasks returns the tasks that a subscription is to, as far as they are known.
func (d *Dispatcher) watchedTasks(r *Request) (ids []string, fault *jsonrpc.Error) {
	var params struct {
		Notifications struct {
			TaskIDs json.RawMessage `json:"taskIds"`
		} `json:"notifications"`
	}
	if d.Tasks == nil || json.Unmarshal(r.Params, &params) != nil || params.Notifications.TaskIDs == nil {
		return nil, nil // the rest of the form is checked where it is read
	}
	if fault := r.needsTasks(); fault != nil {
		fault.Message = "taskIds: " + fault.Message
		return nil, fault
	}
	if json.Unmarshal(params.Notifications.TaskIDs, &ids) != nil {
		return nil, jsonrpc.InvalidParams("params.notifications.taskIds must be a list of ids of tasks")
	}
	return d.Tasks.Known(ids), nil
}

// A Lease is what a request has for itself and a task may need for longer. It ends
// with the last that holds it.
type Lease struct {
	holders atomic.Int64
	end     func()
}

// NewLease makes a lease that its maker holds until release is called.
func NewLease(end func()) (l *Lease, release func()) {
	l = &Lease{end: end}
	return l, l.Take()
}

// Take holds the lease until release is called. A nil lease has no end.
func (l *Lease) Take() (release func()) {
	if l == nil {
		return func() {}
	}
	l.holders.Add(1)
	return sync.OnceFunc(func() {
		if l.holders.Add(-1) == 0 {
			l.end()
		}
	})
}

type leaseKey struct{}

// WithLease returns a context whose call may have to take the lease.
func WithLease(ctx context.Context, l *Lease) context.Context {
	return context.WithValue(ctx, leaseKey{}, l)
}

func leaseOf(ctx context.Context) *Lease {
	l, _ := ctx.Value(leaseKey{}).(*Lease)
	return l
}
