package main

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/perstack-ai/perstack-base/server"
)

// readArguments reads one JSON object, or KEY=VALUE pairs and perhaps the value
// of the one argument that is required.
func readArguments(tool mcp.Tool, words []string) (map[string]any, error) {
	object := map[string]any{}
	if len(words) == 1 && strings.HasPrefix(strings.TrimSpace(words[0]), "{") {
		if err := json.Unmarshal([]byte(words[0]), &object); err != nil {
			return nil, fmt.Errorf("the arguments are not a JSON object: %w", err)
		}
	} else if err := readWords(tool, words, object); err != nil {
		return nil, err
	}
	fillObvious(tool, object)
	return object, nil
}

// pair is KEY=VALUE. What only looks like one begins with no name.
var pair = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)^([A-Za-z_][A-Za-z0-9_]*)=(.*)$`) })

func readWords(tool mcp.Tool, words []string, object map[string]any) error {
	arguments := server.Arguments(tool)
	var alone []string
	for _, word := range words {
		if m := pair().FindStringSubmatch(word); m != nil {
			i := slices.IndexFunc(arguments, func(a server.Argument) bool { return a.Name == m[1] })
			object[m[1]] = readValue(m[2], i >= 0 && arguments[i].Type == "string")
		} else {
			alone = append(alone, word)
		}
	}
	if len(alone) == 0 {
		return nil
	}
	needed := slices.DeleteFunc(arguments, func(a server.Argument) bool {
		_, given := object[a.Name]
		return given || !a.Required || obvious[a.Name] != nil
	})
	if len(needed) != 1 || len(alone) != 1 {
		return fmt.Errorf("%q is neither a JSON object nor key=value", alone[0])
	}
	object[needed[0].Name] = readValue(alone[0], needed[0].Type == "string")
	return nil
}

// readValue reads JSON where it is some and a text is not asked for.
func readValue(text string, asText bool) any {
	var v any
	if asText || json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	return v
}

// obvious is what a person means by leaving out an argument that the API of
// a runtime requires.
var obvious = map[string]any{"args": []any{}, "env": map[string]any{}, "cwd": "", "stdout": true, "stderr": true}

func fillObvious(tool mcp.Tool, object map[string]any) {
	for _, a := range server.Arguments(tool) {
		if value, ok := obvious[a.Name]; ok && a.Required && object[a.Name] == nil {
			object[a.Name] = value
		}
	}
}

// suits tells whether arguments have the names and types that a tool wants.
func suits(tool mcp.Tool, object map[string]any) bool {
	known := 0
	for _, a := range server.Arguments(tool) {
		value, given := object[a.Name]
		if given {
			known++
		}
		if value == nil && a.Required || value != nil && !isOfType(value, a.Type) {
			return false
		}
	}
	return known == len(object)
}

func isOfType(value any, name string) bool {
	switch v := value.(type) {
	case string:
		return name == "string"
	case bool:
		return name == "boolean"
	case float64:
		return (name == "number" || name == "integer") && v == math.Trunc(v)
	case []any:
		return name == "array"
	}
	return name == "object"
}

// usageOf shows how a tool is called, with an example that has what it requires.
func usageOf(tool mcp.Tool) string {
	example := "perstack-base call " + tool.Name
	for _, a := range server.Arguments(tool) {
		if a.Required && obvious[a.Name] == nil {
			example += " " + a.Name + "=" + sampleValue(tool.Name, a)
		}
	}
	text := "for example: " + example
	if list := argumentList(tool); list != "" {
		text = wrap("arguments of "+tool.Name+": "+list, helpWidth, "  ") + "\n" + text
	}
	return text
}

// samples are values for arguments, by name, as a shell takes them; those of one
// tool have its name in front.
var samples = map[string]string{
	"cmd": "'npm run dev'", "session_id": "c1",
	"readImageFile.path": "shot.png", "readPdfFile.path": "paper.pdf", "view_image.path": "shot.png",
	"path": "README.md", "file_path": "README.md", "dir_path": ".", "command": "ls", "pattern": "TODO",
	"text": "hello", "content": "hello", "data": "hello", "oldText": "one", "newText": "two",
	"patch": `"$(cat change.patch)"`, "steps": `'[{"description": "Build", "status": "pending"}]'`,
	"skill": "NAME", "skill_name": "NAME", "name": "NAME", "script": "scripts/check.sh",
}

func sampleValue(tool string, a server.Argument) string {
	for _, name := range []string{tool + "." + a.Name, a.Name} {
		if sample, ok := samples[name]; ok {
			return sample
		}
	}
	return map[string]string{"integer": "1", "number": "1", "boolean": "true", "array": "'[]'", "object": "'{}'"}[a.Type]
}
