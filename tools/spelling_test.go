package tools

import (
	"reflect"
	"strings"
	"testing"
)

type spelled struct {
	Items []titled `json:"items" also:"things" doc:"Some items to bind."`
	Count *int64   `json:"count,omitempty" type:"number" min:"1" max:"9" doc:"How many there are."`
	Word  string   `json:"word,omitempty" enum:"a,b" doc:"One of two words."`
	Maybe *string  `json:"maybe" doc:"A text, or null."`
}

type titled struct {
	Name string `json:"name" also:"title" doc:"What it is called."`
}

// Another accepted name is bound like the listed one, is not listed, and is not
// taken beside it.
func TestAlso(t *testing.T) {
	schema := schemaOf(reflect.TypeFor[spelled]())
	for _, c := range []struct {
		args map[string]any
		want string // of the first name, or of the error
	}{
		{map[string]any{"items": []any{map[string]any{"name": "x"}}}, "x"},
		{map[string]any{"things": []any{map[string]any{"title": "x"}}}, "x"},
		{map[string]any{"things": nil, "items": []any{map[string]any{"name": "x", "title": nil}}}, "x"},
		{map[string]any{"items": []any{}, "things": []any{}}, "items and things mean the same; give one of them."},
		{map[string]any{"items": []any{map[string]any{"name": "x", "title": "y"}}}, "items[0].name and items[0].title mean the same; give one of them."},
		{map[string]any{"things": nil}, `Missing required argument "items".`},
		{map[string]any{"thing": []any{}}, `Unknown argument "thing".`},
	} {
		var in spelled
		err := schema.bind(c.args, reflect.ValueOf(&in).Elem())
		got := ""
		if err != nil {
			got = err.Error()
		} else if len(in.Items) > 0 {
			got = in.Items[0].Name
		}
		if got != c.want {
			t.Errorf("%v: got %s, want %s", c.args, got, c.want)
		}
	}
	if listed := string(schema.JSON()); strings.Contains(listed, "things") || strings.Contains(listed, "title") {
		t.Error(listed)
	}
}

// Wrong types are told before bounds, wherever they stand.
func TestTypesBeforeBounds(t *testing.T) {
	schema := schemaOf(reflect.TypeFor[spelled]())
	for want, args := range map[string]map[string]any{
		"word must be a string.":        {"items": []any{}, "count": 0.0, "word": 3.0},
		"count must be at least 1.":     {"items": []any{}, "count": 0.0, "word": "c"},
		"count must be at most 9.":      {"items": []any{}, "count": 10.0},
		"word must be one of a, b.":     {"items": []any{}, "count": 2.0, "word": "c"},
		`Unknown argument "x".`:         {"x": 1.0, "count": "a"},
		"count must be a whole number.": {"items": []any{}, "count": 1.5},
	} {
		var in spelled
		if err := schema.bind(args, reflect.ValueOf(&in).Elem()); err == nil || err.Error() != want {
			t.Errorf("%v: %v, want %s", args, err, want)
		}
	}
}

func TestListedTypes(t *testing.T) {
	listed := string(schemaOf(reflect.TypeFor[spelled]()).JSON())
	for _, part := range []string{`"count":{"type":"number"`, `"maybe":{"type":["string","null"]`} {
		if !strings.Contains(listed, part) {
			t.Errorf("%s is not in %s", part, listed)
		}
	}
}
