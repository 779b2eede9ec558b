package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/spf13/cobra"

	"github.com/perstack-ai/perstack-base/server"
)

const callExamples = `  perstack-base call readTextFile path=README.md to=5
  perstack-base call exec '{"command":"ls","args":["-l"],"env":{},"cwd":"","stdout":true,"stderr":true}'
  perstack-base call todo newTodos='["Plan","Build"]'`

func callCommand(o *options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "call TOOL [JSON | key=value ...]",
		Short:   "Call one tool and print its answer",
		Long:    "Call one tool as a client would and print its text. Arguments are one JSON object, or key=value\npairs whose values are JSON where they can be and text otherwise. Exit code 1 means that the tool failed.",
		Example: callExamples,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, end, err := open(o)
			if err != nil {
				return err
			}
			defer end()
			return callTool(cmd.Context(), cmd.OutOrStdout(), s, args, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the whole result as JSON")
	return cmd
}

func callTool(ctx context.Context, w io.Writer, s *server.Server, args []string, asJSON bool) error {
	input, err := callArguments(s, args[0], args[1:])
	if err != nil {
		return err
	}
	result, err := s.Call(ctx, args[0], input)
	if err != nil {
		return err
	}
	if err := printResult(w, result, asJSON); err != nil {
		return failure{err}
	}
	if result.IsError {
		return failure{}
	}
	return nil
}

func printResult(w io.Writer, result *mcp.CallToolResult, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(result)
	}
	for _, content := range result.Content {
		line := fmt.Sprintf("(%T)", content)
		switch c := content.(type) {
		case mcp.TextContent:
			line = c.Text
		case mcp.ImageContent:
			line = fmt.Sprintf("(image, %s, %d bytes of base64)", c.MIMEType, len(c.Data))
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// callArguments reads one JSON object or key=value pairs. The tool's schema
// decides: a text argument takes its value as it is, any other takes JSON.
func callArguments(s *server.Server, tool string, words []string) (map[string]any, error) {
	if len(words) == 1 && strings.HasPrefix(strings.TrimSpace(words[0]), "{") {
		var object map[string]any
		if err := json.Unmarshal([]byte(words[0]), &object); err != nil {
			return nil, fmt.Errorf("the arguments are no JSON object: %w", err)
		}
		return object, nil
	}
	texts := s.TextArguments(tool)
	object := map[string]any{}
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			return nil, fmt.Errorf("%q is neither a JSON object nor key=value", word)
		}
		var v any
		if texts[key] || json.Unmarshal([]byte(value), &v) != nil {
			v = value
		}
		object[key] = v
	}
	return object, nil
}
