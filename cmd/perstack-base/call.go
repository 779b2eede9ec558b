package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/spf13/cobra"

	"github.com/perstack-ai/perstack-base/server"
)

const callExamples = `  perstack-base call readTextFile README.md
  perstack-base call readTextFile path=README.md to=5
  perstack-base call exec ls args='["-l"]'
  perstack-base call shell_command --tools baseagent 'make -j2 | tail'
  perstack-base call todo '{"newTodos": ["Plan", "Build"]}'`

func callCommand(o *options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "call TOOL [JSON | VALUE] [KEY=VALUE ...]",
		Short: "Call one tool and print its answer",
		Long: `Call one tool as a client would, and print its text. Arguments are one JSON object, or KEY=VALUE
pairs; where a tool requires one argument only, its value is enough. Values are JSON, but a text
stands as it is. perstack-base tools shows what each tool takes. Exit code 1 means that the tool
failed.`,
		Example: callExamples,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("which tool? As in: perstack-base call readTextFile README.md (perstack-base tools lists them)")
			}
			return nil
		},
		ValidArgsFunction: completeCall(o),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, end, err := open(o)
			if err != nil {
				return err
			}
			defer end()
			return callTool(cmd, s, args, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the whole result as JSON")
	return cmd
}

func callTool(cmd *cobra.Command, s *server.Server, args []string, asJSON bool) error {
	tool, err := s.Tool(args[0])
	if err != nil {
		return err
	}
	input, err := readArguments(tool, args[1:])
	if err != nil {
		return fmt.Errorf("%w\n%s", err, usageOf(tool))
	}
	result, err := s.Call(cmd.Context(), tool.Name, input)
	if err != nil {
		return err
	}
	if err := printResult(cmd.OutOrStdout(), result, asJSON); err != nil {
		return failure{err}
	}
	if result.IsError {
		if !suits(tool, input) {
			fmt.Fprintln(cmd.ErrOrStderr(), usageOf(tool))
		}
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
