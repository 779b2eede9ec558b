//go:build conformance

package server

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/tools"
)

// This file and conformance_*.go make the build for the official conformance
// suite: the release with one more profile, whose tools, prompts and resources
// have the names and answers that the suite prescribes.

func init() {
	Profiles = append(Profiles, fixtures)
	extras.options = []mcpserver.ServerOption{
		mcpserver.WithLogging(), mcpserver.WithElicitation(), mcpserver.WithResourceCapabilities(true, true),
	}
	extras.register = func(s *Server) {
		if !slices.ContainsFunc(s.chosen, func(c selected) bool { return c.profile == fixtures }) {
			return
		}
		s.mcp.EnableSampling()
		addFixtureTools(s.mcp)
		addInputTools(s.mcp)
		addFixturePrompts(s.mcp)
		addFixtureResources(s.mcp)
	}
	extras.intercept = interceptFixture
}

// fixtures has one tool of the usual making; the others need what no tool of
// this server has, so they speak mcp-go directly.
var fixtures = &tools.Profile{
	Name: "conformance", Summary: "Fixtures of the official conformance suite.", Dialect: fixtureDialect{},
	Tools: []*tools.Tool{tools.Define(tools.Info{
		Name: "test_simple_text", Title: "Simple text", Description: "Answers with a text.", Effect: tools.Reads, NoOutputSchema: true,
	}, func(context.Context, *tools.Env, struct{}) (string, error) {
		return "This is a simple text response for testing.", nil
	})},
}

type fixtureDialect struct{}

func (fixtureDialect) OK(_ *tools.Call, out any) *mcp.CallToolResult { return tools.Text(out.(string)) }
func (fixtureDialect) Fail(_ *tools.Call, e *tools.Error) *mcp.CallToolResult {
	return tools.Text(e.Msg)
}

// interceptFixture answers with the errors that no handler of mcp-go can give.
func interceptFixture(r *request) (any, *rpcError, bool) {
	if !r.modern || r.method != methodToolsCall {
		return nil, nil, false
	}
	var params struct {
		RequestState *string `json:"requestState"`
		Meta         struct {
			Capabilities struct{ Sampling *struct{} } `json:"io.modelcontextprotocol/clientCapabilities"`
		} `json:"_meta"`
	}
	if json.Unmarshal(r.params, &params) != nil {
		return nil, nil, false
	}
	switch {
	case r.tool == "test_missing_capability" && params.Meta.Capabilities.Sampling == nil:
		need := map[string]any{"requiredCapabilities": map[string]any{"sampling": map[string]any{}}}
		return nil, &rpcError{Code: mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, Message: "this tool needs sampling", Data: need}, true
	case r.tool == "test_input_required_result_tampered_state" && params.RequestState != nil && !genuine(*params.RequestState):
		return nil, invalidParams("requestState was changed"), true
	}
	return nil, nil, false
}

// RequestSampling asks the client for a completion.
func (q *inquiry) RequestSampling(ctx context.Context, r mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	raw, err := q.ask(ctx, string(mcp.MethodSamplingCreateMessage), r.CreateMessageParams)
	if err != nil {
		return nil, err
	}
	var result mcp.CreateMessageResult
	if json.Unmarshal(raw, &result) != nil {
		return nil, errors.New("the client's answer is not a completion")
	}
	result.Content, err = mcp.ParseSamplingContent(result.Content)
	return &result, err
}

// The suite sets a level and subscribes, and looks at nothing but the answer.

func (s *session) SetLogLevel(mcp.LoggingLevel)       {}
func (s *session) GetLogLevel() mcp.LoggingLevel      { return mcp.LoggingLevelInfo }
func (s *session) SubscribeToResource(string)         {}
func (s *session) UnsubscribeFromResource(string)     {}
func (s *session) IsSubscribedToResource(string) bool { return false }
