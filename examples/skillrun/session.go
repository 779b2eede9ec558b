package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
)

// serverPackage is what go run builds when no binary is given.
const serverPackage = "github.com/perstack-ai/perstack-base/cmd/perstack-base"

// A session is one connection to a server.
type session struct {
	client  *client.Client
	options options
	inputs  []input
}

// An input is a file that runs find in inputs/.
type input struct {
	From string `json:"from"`
}

// begin starts the server and shakes hands.
func begin(ctx context.Context, o options) (*session, error) {
	args, err := arguments(o)
	if err != nil {
		return nil, err
	}
	command, environment := o.server, []string(nil)
	if command == "" {
		// Static, so that it can be the first process in a container of any image.
		command, environment, args = "go", []string{"CGO_ENABLED=0"}, append([]string{"run", serverPackage}, args...)
	}
	c, err := client.NewStdioMCPClient(command, environment, args...)
	if err != nil {
		return nil, fmt.Errorf("the server does not start: %w", err)
	}
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	hello.Params.ClientInfo = mcp.Implementation{Name: "skillrun", Version: "1"}
	if _, err := c.Initialize(ctx, hello); err != nil {
		c.Close()
		return nil, fmt.Errorf("the server does not answer: %w", err)
	}
	return &session{client: c, options: o}, nil
}

// arguments are the flags of the server.
func arguments(o options) ([]string, error) {
	args := []string{"serve", "--tools", "skills", "--no-discover", "--workspace", o.workspace, "--skills", o.skills}
	if o.inputs != "" {
		args = append(args, "--allow-read", o.inputs)
	}
	switch o.executor {
	case "local":
		return args, nil
	case "container":
		return append(args, "--container", o.image, "--container-engine", o.engine), nil
	}
	return nil, fmt.Errorf("-executor is local or container, not %q", o.executor)
}

// list shows name and description of each skill.
func (s *session) list(ctx context.Context) (string, error) {
	skills, err := s.client.ListPrompts(ctx, mcp.ListPromptsRequest{})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, skill := range skills.Prompts {
		fmt.Fprintf(&b, "%s: %s\n", skill.Name, skill.Description)
	}
	return b.String(), nil
}

func (s *session) load(ctx context.Context, skill string, docs []string) (string, error) {
	blocks, err := s.call(ctx, "skill_load", map[string]any{"skill": skill, "docs": docs})
	return strings.Join(blocks, "\n") + "\n", err
}

func (s *session) docs(ctx context.Context, skill string) (string, error) {
	blocks, err := s.call(ctx, "skill_list_docs", map[string]any{"skill": skill})
	return strings.Join(blocks, "\n") + "\n", err
}

// input gives a file to later runs.
func (s *session) input(path string) (string, error) {
	if path == "" {
		return "", errors.New("input needs the path of a file")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	s.inputs = append(s.inputs, input{From: "host://" + path})
	return "inputs/" + filepath.Base(path) + "\n", nil
}

// A result is what skill_run answers.
type result struct {
	Stdout      string
	Stderr      string
	ExitCode    int  `json:"exit_code"`
	TimedOut    bool `json:"timed_out"`
	OutputFiles []struct {
		Name      string
		Content   string
		SizeBytes int64 `json:"size_bytes"`
	} `json:"output_files"`
	ArtifactFiles []struct{ URI string } `json:"artifact_files"`
	Warnings      []string
}

// run runs a command of a skill and shows what it printed and the files it made.
func (s *session) run(ctx context.Context, skill, command string) (string, error) {
	args := map[string]any{"skill": skill, "command": command, "output_files": []string{"out/**"}}
	if len(s.inputs) > 0 {
		args["inputs"] = s.inputs
	}
	if s.options.artifacts {
		args["save_as_artifacts"] = true
	}
	if s.options.omitInline {
		args["omit_inline_content"] = true
	}
	blocks, err := s.call(ctx, "skill_run", args)
	if err != nil {
		return "", err
	}
	var r result
	if err := json.Unmarshal([]byte(blocks[0]), &r); err != nil {
		return "", err
	}
	return r.String(), nil
}

func (r result) String() string {
	var b strings.Builder
	b.WriteString(r.Stdout + r.Stderr)
	if r.TimedOut {
		b.WriteString("The time was up.\n")
	}
	fmt.Fprintf(&b, "exit code %d\n", r.ExitCode)
	for _, file := range r.OutputFiles {
		fmt.Fprintf(&b, "%s (%d bytes)\n%s", file.Name, file.SizeBytes, file.Content)
	}
	for _, file := range r.ArtifactFiles {
		fmt.Fprintln(&b, "saved as", file.URI)
	}
	for _, warning := range r.Warnings {
		fmt.Fprintln(&b, "Warning:", warning)
	}
	return b.String()
}

// call calls a tool and returns the texts of its answer; a refusal is an error.
func (s *session) call(ctx context.Context, tool string, args map[string]any) ([]string, error) {
	var request mcp.CallToolRequest
	request.Params.Name, request.Params.Arguments = tool, args
	answer, err := s.client.CallTool(ctx, request)
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, block := range answer.Content {
		if text, ok := block.(mcp.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	if len(texts) == 0 {
		return nil, fmt.Errorf("%s answered without text", tool)
	}
	if answer.IsError {
		return nil, refusal(texts[0])
	}
	return texts, nil
}

// refusal is what a tool says when it refuses: what was wrong, and what to do.
func refusal(text string) error {
	var said struct{ Error, Hint string }
	if json.Unmarshal([]byte(text), &said) != nil || said.Error == "" {
		return errors.New(text)
	}
	return errors.New(strings.TrimSpace(said.Error + "\n" + said.Hint))
}
