package server

import (
	"encoding/json"
	"fmt"
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
	in := inputOf(t)
	var out []string
	for _, name := range in.order {
		if in.required[name] {
			out = append(out, "`"+name+"`")
		} else {
			out = append(out, "*`"+name+"`*")
		}
	}
	return strings.Join(out, " ")
}

// An input is what a listed schema says of a tool's arguments.
type input struct {
	order    []string
	types    map[string]string
	required map[string]bool
}

// inputOf reads a listed schema, which this program wrote.
func inputOf(t mcp.Tool) input {
	var schema struct {
		Properties json.RawMessage
		Required   []string
	}
	in := input{types: map[string]string{}, required: map[string]bool{}}
	mustUnmarshal(t.RawInputSchema, &schema)
	properties := map[string]struct{ Type string }{}
	mustUnmarshal(schema.Properties, &properties)
	for name, p := range properties {
		in.types[name] = p.Type
	}
	for _, name := range schema.Required {
		in.required[name] = true
	}
	in.order = keysInOrder(schema.Properties)
	return in
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

func mustUnmarshal(data []byte, v any) {
	if err := json.Unmarshal(data, v); err != nil {
		panic(err)
	}
}

// TextArguments names the arguments of a listed tool that are texts, so that a
// command line can pass them unquoted. It is empty for an unknown tool.
func (s *Server) TextArguments(name string) map[string]bool {
	texts := map[string]bool{}
	if tool := s.mcp.GetTool(name); tool != nil {
		for arg, typ := range inputOf(tool.Tool).types {
			texts[arg] = typ == "string"
		}
	}
	return texts
}
