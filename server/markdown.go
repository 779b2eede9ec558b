package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
)

// Markdown is a table of tools: name, arguments (optional ones in italics), what it does.
func Markdown(listed []Listed) string {
	var b strings.Builder
	b.WriteString("| tool | arguments | does |\n|---|---|---|\n")
	for _, l := range listed {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", l.Tool.Name, markdownArguments(l.Tool), strings.ReplaceAll(Summary(l.Tool), "|", "\\|"))
	}
	return b.String()
}

// Summary is the first sentence of a tool's description.
func Summary(t mcp.Tool) string {
	first, _, found := strings.Cut(t.Description, ". ")
	if found {
		return first + "."
	}
	return first
}

func markdownArguments(t mcp.Tool) string {
	var out []string
	for _, a := range Arguments(t) {
		if a.Required {
			out = append(out, "`"+a.Name+"`")
		} else {
			out = append(out, "*`"+a.Name+"`*")
		}
	}
	return strings.Join(out, " ")
}

// An Argument is one that a listed tool takes, as its schema has it.
type Argument struct {
	Name        string
	Type        string // of JSON Schema
	Description string
	Required    bool
	Default     any      // nil = none
	Minimum     *float64 // of numbers; nil = none
	Maximum     *float64
	MaxLength   *int     // of texts, in characters; nil = none
	Enum        []string // the only texts
}

// Arguments returns what a listed tool takes, in the order of its schema.
func Arguments(t mcp.Tool) (list []Argument) {
	var schema struct {
		Properties json.RawMessage
		Required   []string
	}
	mustUnmarshal(t.RawInputSchema, &schema)
	var properties map[string]json.RawMessage
	mustUnmarshal(schema.Properties, &properties)
	for _, name := range keysInOrder(schema.Properties) {
		a := Argument{Name: name, Required: slices.Contains(schema.Required, name)}
		mustUnmarshal(properties[name], &a)
		list = append(list, a)
	}
	return list
}

// keysInOrder returns the keys of a JSON object as they stand in the text.
func keysInOrder(object json.RawMessage) (keys []string) {
	dec := json.NewDecoder(strings.NewReader(string(object)))
	dec.Token() // the opening brace
	for dec.More() {
		key, _ := dec.Token()
		keys = append(keys, key.(string))
		var skip json.RawMessage
		dec.Decode(&skip)
	}
	return keys
}

// mustUnmarshal reads what this program wrote.
func mustUnmarshal(data []byte, v any) {
	if err := json.Unmarshal(data, v); err != nil {
		panic(err)
	}
}
