package tools

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

type item struct {
	Name string `json:"name" minLength:"1" doc:"Name of the item."`
	Kind string `json:"kind" enum:"a,b" doc:"Kind of the item."`
}

type sampleIn struct {
	Path  string            `json:"path" minLength:"1" maxLength:"5" nul:"no" doc:"Path, at most {maxLength} characters."`
	From  *int64            `json:"from,omitempty" min:"-5" max:"10" doc:"A line number."`
	Limit int64             `json:"limit" default:"3" doc:"How many there are."`
	Ratio float64           `json:"ratio,omitempty" doc:"Any number at all."`
	Quiet bool              `json:"quiet,omitempty" doc:"Whether to be quiet."`
	Args  []string          `json:"args,omitempty" nul:"no" doc:"Words to pass on."`
	Env   map[string]string `json:"env,omitempty" nul:"no" doc:"Variables to set."`
	Items []item            `json:"items,omitempty" doc:"Things to list."`
}

func bindSample(t testing.TB, text string) (sampleIn, error) {
	t.Helper()
	var args map[string]any
	if err := json.Unmarshal([]byte(text), &args); err != nil {
		t.Fatal(err)
	}
	var in sampleIn
	err := schemaOf(reflect.TypeFor[sampleIn]()).bind(args, reflect.ValueOf(&in).Elem())
	return in, err
}

func TestBind(t *testing.T) {
	in, err := bindSample(t, `{"path":"a","from":-2.0,"ratio":0.5,"quiet":true,"args":["x",""],"env":{"A":"1"},"items":[{"name":"n","kind":"b"}]}`)
	from := int64(-2)
	want := sampleIn{"a", &from, 3, 0.5, true, []string{"x", ""}, map[string]string{"A": "1"}, []item{{"n", "b"}}}
	if err != nil || !reflect.DeepEqual(in, want) {
		t.Errorf("got %+v, %v", in, err)
	}
	if in, err := bindSample(t, `{"path":"a","from":null,"limit":null}`); err != nil || in.From != nil || in.Limit != 3 {
		t.Errorf("null must count as absent: %+v, %v", in, err)
	}
}

func TestBindRefuses(t *testing.T) {
	for _, c := range []struct{ args, message, hint string }{
		{`{"pth":1,"from":"x"}`, `Unknown argument "pth".`, `Did you mean "path"? Known arguments: path, from, limit, ratio, quiet, args, env, items.`},
		{`{"zzzzzzzzz":1,"yyyyyyyyy":2}`, `Unknown arguments "yyyyyyyyy", "zzzzzzzzz".`, `Known arguments: path, from, limit, ratio, quiet, args, env, items.`},
		{`{"from":"x"}`, `Missing required argument "path".`, ""},
		{`{"path":null}`, `Missing required argument "path".`, ""},
		{`{"path":7}`, "path must be a string.", ""},
		{`{"path":""}`, "path must not be empty.", ""},
		{`{"path":"a\u0000b"}`, "path must not contain NUL.", ""},
		{`{"path":"éééééé"}`, "path has 6 characters, more than the 5 allowed.", ""},
		{`{"path":"a","from":1.5}`, "from must be a whole number.", ""},
		{`{"path":"a","from":"1"}`, "from must be a whole number.", ""},
		{`{"path":"a","from":true}`, "from must be a whole number.", ""},
		{`{"path":"a","from":-6}`, "from must be at least -5.", ""},
		{`{"path":"a","from":11}`, "from must be at most 10.", ""},
		{`{"path":"a","limit":9007199254740992}`, "limit must be between -9007199254740991 and 9007199254740991.", ""},
		{`{"path":"a","ratio":"1"}`, "ratio must be a number.", ""},
		{`{"path":"a","quiet":"yes"}`, "quiet must be true or false.", ""},
		{`{"path":"a","args":"x"}`, "args must be an array.", ""},
		{`{"path":"a","args":["x",1]}`, "args[1] must be a string.", ""},
		{`{"path":"a","args":["x","a\u0000"]}`, "args[1] must not contain NUL.", ""},
		{`{"path":"a","env":["x"]}`, "env must be an object.", ""},
		{`{"path":"a","env":{"A":1}}`, "env.A must be a string.", ""},
		{`{"path":"a","items":[{"name":"n","kind":"c"}]}`, "items[0].kind must be one of a, b.", ""},
		{`{"path":"a","items":[{"name":"n"}]}`, `Missing required argument "items[0].kind".`, ""},
		{`{"path":"a","items":[{"name":"n","kind":"a","x":1}]}`, `Unknown argument "items[0].x".`, "Known arguments: name, kind."},
		{`{"path":"a","items":[7]}`, "items[0] must be an object.", ""},
	} {
		_, err := bindSample(t, c.args)
		var arg *ArgError
		if !errors.As(err, &arg) || arg.Error() != c.message || arg.Hint() != c.hint {
			t.Errorf("%s: got %v (hint %q), want %s (hint %q)", c.args, err, hintOf(err), c.message, c.hint)
		}
	}
}

func hintOf(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}

func TestSchemaIsListedAsEnforced(t *testing.T) {
	got := string(schemaOf(reflect.TypeFor[sampleIn]()).JSON())
	for _, part := range []string{
		`{"type":"object","properties":{"path":{"type":"string","description":"Path, at most 5 characters.","minLength":1,"maxLength":5}`,
		`"from":{"type":"integer","description":"A line number.","minimum":-5,"maximum":10}`,
		`"limit":{"type":"integer","description":"How many there are.","default":3}`,
		`"args":{"type":"array","description":"Words to pass on.","items":{"type":"string"}}`,
		`"env":{"type":"object","description":"Variables to set.","additionalProperties":{"type":"string"}}`,
		`"items":{"type":"array","description":"Things to list.","items":{"type":"object","properties":{"name":`,
		`"enum":["a","b"]`,
		`"required":["path"],"additionalProperties":false}`,
	} {
		if !strings.Contains(got, part) {
			t.Errorf("%s is not in\n%s", part, got)
		}
	}
}

// TestSchemaText: what is put together by hand is what encoding/json makes of the texts.
func TestSchemaText(t *testing.T) {
	for _, text := range []string{"plain", `a "quoted" \ text`, "<b> & é\u2028", "line\n\ttab\x7f", "\xff broken", ""} {
		schema := Schema{Fields: []*Field{{Name: text, Doc: text, Default: text, Enum: []string{text}, kind: kindString}}}
		var got struct {
			Properties map[string]struct {
				Description, Default string
				Enum                 []string
			}
			Required []string
		}
		if err := json.Unmarshal(schema.JSON(), &got); err != nil {
			t.Errorf("%q: %v in %s", text, err, schema.JSON())
			continue
		}
		want := strings.ToValidUTF8(text, "\ufffd")
		if f := got.Properties[want]; f.Description != want || f.Default != want || !slices.Equal(f.Enum, []string{want}) || !slices.Equal(got.Required, []string{want}) {
			t.Errorf("%q became %s", text, schema.JSON())
		}
	}
}

// TestBrokenToolPanicsWhenListed: the structs of a tool are read when it is listed, not
// when it is defined, and one that has no schema still shows in the first test of it.
func TestBrokenToolPanicsWhenListed(t *testing.T) {
	type broken struct {
		A chan int `json:"a" doc:"x"`
	}
	tool := Define(Info{Name: "n", Title: "t", Description: "d"}, func(context.Context, *Env, broken) (string, error) { return "", nil })
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	tool.Bind(&Env{}, &Profile{})
}

func TestSchemaPanicsEarly(t *testing.T) {
	for name, typ := range map[string]reflect.Type{
		"no struct":    reflect.TypeFor[int](),
		"no json name": reflect.TypeFor[struct{ A string }](),
		"no doc": reflect.TypeFor[struct {
			A string `json:"a"`
		}](),
		"unknown type": reflect.TypeFor[struct {
			A chan int `json:"a" doc:"x"`
		}](),
		"unusable default": reflect.TypeFor[struct {
			A int `json:"a" doc:"x" default:"x"`
		}](),
		"unusable bound": reflect.TypeFor[struct {
			A int `json:"a" doc:"x" min:"x"`
		}](),
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			schemaOf(typ)
		}()
	}
}

// FuzzBind: whatever the arguments, bind ends with a value or with an *ArgError
// that says something.
func FuzzBind(f *testing.F) {
	f.Add(`{"path":"a","from":1,"items":[{"name":"n","kind":"a"}]}`)
	f.Add(`{"path":["a"],"args":[null],"env":{"":null}}`)
	f.Add(`{"limit":1e308,"ratio":-0.0}`)
	schema := schemaOf(reflect.TypeFor[sampleIn]())
	f.Fuzz(func(t *testing.T, text string) {
		var args map[string]any
		if json.Unmarshal([]byte(text), &args) != nil {
			return
		}
		var in sampleIn
		err := schema.bind(args, reflect.ValueOf(&in).Elem())
		var arg *ArgError
		switch {
		case err != nil && (!errors.As(err, &arg) || len(arg.Error()) < 10):
			t.Errorf("%s: %v", text, err)
		case err == nil && (in.Path == "" || len([]rune(in.Path)) > 5 || in.Limit > MaxInteger || math.IsNaN(in.Ratio)):
			t.Errorf("%s bound to %+v", text, in)
		}
	})
}
