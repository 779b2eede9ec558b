package tools

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// Effect is what a call does to the world; it becomes the four MCP hints.
type Effect struct {
	ReadOnly    bool // changes nothing outside the session
	Destructive bool // may overwrite or remove what was there
	Idempotent  bool // the same call again changes nothing more
	OpenWorld   bool // reaches things this server does not control
	OfCommands  bool // of no use without tools that run commands, so --read-only leaves it out too
	KeepsFiles  bool // safe under --read-only although it changes something: state of the session only
}

// The effects that tools have. A new one is a decision, so it gets a name.
var (
	Reads    = Effect{ReadOnly: true, Idempotent: true}
	Replaces = Effect{Destructive: true, Idempotent: true}
	Edits    = Effect{Destructive: true}
	Runs     = Effect{Destructive: true, OpenWorld: true}
	Steers   = Effect{Destructive: true, OpenWorld: true, OfCommands: true}  // writes to or signals what runs
	Watches  = Effect{ReadOnly: true, Idempotent: true, OfCommands: true}    // looks at what runs
	Notes    = Effect{KeepsFiles: true}                                      // adds to the session's state
	Sets     = Effect{KeepsFiles: true, Idempotent: true}                    // replaces the session's state
	Clears   = Effect{KeepsFiles: true, Idempotent: true, Destructive: true} // drops the session's state
)

// AllowedReadOnly tells whether --read-only keeps a tool with this effect.
func (e Effect) AllowedReadOnly() bool { return !e.OfCommands && (e.ReadOnly || e.KeepsFiles) }

// A Lane is a queue: calls of one lane on one connection take effect in arrival
// order, one at a time.
type Lane string

// The lanes. The zero Lane means that calls start at once.
const (
	LaneList   Lane = "list"
	LaneFiles  Lane = "files"
	LaneSkills Lane = "skills"
)

// Info is what a tool says of itself.
type Info struct {
	Name        string
	Title       string
	Description string
	Effect      Effect
	Lane        Lane

	// Budget is how many bytes of text an answer may hold where --max-output does
	// not say otherwise; Fixed: it never does. 0 = the answer is always short.
	Budget int
	Fixed  bool

	// Largest is the size of the largest file that it takes, in bytes; 0 = any. For
	// documentation.
	Largest int64

	// Timeout ends what a call sets no deadline for and cannot; 0 = nothing can
	// take long, or an argument sets it. For documentation.
	Timeout time.Duration

	// View shows people what calls do, in clients that can; "" = none.
	View View

	// NoOutputSchema: the result is text for people, not an object.
	NoOutputSchema bool

	// Adapt changes what is listed and enforced to this server's settings (a
	// default that a flag sets, an argument that one transport has). Optional.
	Adapt func(env *Env, listing *Listing)

	// OnFail adds what this tool's API wants beside every error, bad arguments
	// included, by setting Error.Data. Optional.
	OnFail func(ctx context.Context, env *Env, call *Call, e *Error)
}

// A Listing is one tool as one server lists and enforces it.
type Listing struct {
	Description string
	Input       *Schema
	Output      *Schema // nil when the tool has none
}

// A Tool is a typed function with its schemas, ready for any server. Make one
// with [Define].
type Tool struct {
	Info
	call func(ctx context.Context, env *Env, schema *Schema, args map[string]any) (any, error)

	in, out       reflect.Type // what call takes and returns
	once          sync.Once    // makes the schemas
	input, output *Schema
}

// Define makes a tool of fn. The schemas come from the structs In and Out, when a server
// first lists or calls the tool: a program has many tools that it never serves. It panics
// then when they cannot, so let a test list every tool.
func Define[In, Out any](info Info, fn func(context.Context, *Env, In) (Out, error)) *Tool {
	t := &Tool{Info: info, in: reflect.TypeFor[In](), out: reflect.TypeFor[Out]()}
	if info.Name == "" || info.Title == "" || info.Description == "" {
		panic(fmt.Sprintf("tool %q needs a name, a title and a description", info.Name))
	}
	t.call = func(ctx context.Context, env *Env, schema *Schema, args map[string]any) (any, error) {
		var in In
		if err := schema.bind(args, reflect.ValueOf(&in).Elem()); err != nil {
			return nil, err
		}
		return fn(ctx, env, in)
	}
	return t
}

// schemas returns the schemas of arguments and results, nil where none is listed.
func (t *Tool) schemas() (in, out *Schema) {
	t.once.Do(func() {
		t.input = schemaOf(t.in)
		if t.out.Kind() == reflect.Struct && !t.NoOutputSchema {
			t.output = schemaOf(t.out)
		}
	})
	return t.input, t.output
}

// listing returns the tool as the server of env shows it.
func (t *Tool) listing(env *Env) *Listing {
	in, out := t.schemas()
	l := &Listing{Description: t.Description, Input: in.clone()}
	if out != nil {
		l.Output = out.clone()
	}
	if t.Adapt != nil {
		t.Adapt(env, l)
	}
	return l
}

// A client takes longResult characters of an answer as they are, more only when the
// tool lists them under sizeKey, and Longest at most: Claude Code writes what is
// longer to a file, and shows its model the beginning.
const (
	sizeKey    = "anthropic/maxResultSizeChars"
	longResult = 50_000
	Longest    = 500_000
)

// meta is what a listing says of the length of answers, nil for a usual one.
func (t *Tool) meta(env *Env) *mcp.Meta {
	size := t.Budget
	if size > 0 && !t.Fixed {
		size = env.Budget(size)
	}
	if size <= longResult {
		return nil
	}
	return mcp.NewMetaFromMap(map[string]any{sizeKey: min(size, Longest)})
}

// entry returns the tools/list entry of a listing.
func (t *Tool) entry(env *Env, l *Listing) mcp.Tool {
	e := t.Effect
	listed := mcp.Tool{
		Name: t.Name, Title: t.Title, Description: l.Description, Meta: t.meta(env),
		RawInputSchema: l.Input.JSON(),
		Annotations: mcp.ToolAnnotation{
			ReadOnlyHint: &e.ReadOnly, DestructiveHint: &e.Destructive,
			IdempotentHint: &e.Idempotent, OpenWorldHint: &e.OpenWorld,
		},
	}
	if l.Output != nil {
		listed.RawOutputSchema = l.Output.JSON()
	}
	return listed
}

// A Profile is a named set of tools that implements one API, with its own instructions for
// the model. Compiled-in skills of other systems are profiles here.
type Profile struct {
	Name         string
	Summary      string // one line for people
	Instructions string // sentences for the model, joined into the server's instructions
	Dialect      Dialect
	Tools        []*Tool
}

// Tool returns the profile's tool of that name, or nil.
func (p *Profile) Tool(name string) *Tool {
	for _, t := range p.Tools {
		if t.Name == name {
			return t
		}
	}
	return nil
}
