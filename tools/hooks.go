package tools

import (
	"context"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/tools/internal/skill"
)

// watchOf returns the hooks of activated skills that watch a call, nil for none.
func watchOf(ctx context.Context) *skill.Watch {
	session, _ := ctx.Value(sessionKey{}).(*Session)
	if session == nil {
		return nil
	}
	return session.Skills.Watch(ctx)
}

// watched is run between the hooks of skills. What they change passes every
// check of a fresh call; what they block is not done, or not shown.
func (t *Tool) watched(ctx context.Context, watch *skill.Watch, env *Env, schema *Schema, call *Call, req mcp.CallToolRequest) *mcp.CallToolResult {
	raw := req.Params.Arguments
	if raw == nil {
		raw = map[string]any{}
	}
	before := watch.Before(ctx, t.Name, raw)
	if refusal := t.refusal(ctx, env, call, &before, req); refusal != nil {
		call.Args, _ = raw.(map[string]any)
		if refusal.IsError {
			addMessages(refusal, "pre", t.Name, before.Messages)
		}
		return refusal
	}
	result := t.run(ctx, env, schema, call, before.Input)
	after := watch.After(ctx, t.Name, before.Input, blockText(result))
	if after.Blocked {
		text := "Tool " + t.Name + " output blocked by hook"
		if after.Reason != "" {
			text += ": " + after.Reason
		}
		result = t.fail(ctx, env, call, Errorf(fault.Denied, "", "%s", text))
		shownOf(ctx).forget()
	}
	addMessages(result, "pre", t.Name, before.Messages)
	addMessages(result, "post", t.Name, after.Messages)
	return result
}

// refusal is the answer to a call that hooks do not let pass, or a question to
// the client; nil lets it pass.
func (t *Tool) refusal(ctx context.Context, env *Env, call *Call, v *skill.Verdict, req mcp.CallToolRequest) *mcp.CallToolResult {
	call.Args, _ = v.Input.(map[string]any)
	switch {
	case v.Blocked:
		reason := v.Reason
		if reason == "" {
			reason = "blocked by skill hook"
		}
		return t.fail(ctx, env, call, Errorf(fault.Denied, "", "Tool %s blocked by hook: %s", t.Name, reason))
	case !v.Ask:
		return nil
	}
	allowed, question := t.askUser(ctx, v.Reason, req)
	if allowed {
		return nil
	}
	if question != nil {
		return question
	}
	return t.fail(ctx, env, call, Errorf(fault.Denied, "", "Tool %s requires permission: %s", t.Name, v.Reason))
}

// permissionID names the question of a hook among the inputs of a request.
const permissionID = "hook-permission"

// askUser asks the client's user: on a legacy connection at once, in the modern
// era by a result that wants the call repeated with the answer.
func (t *Tool) askUser(ctx context.Context, reason string, req mcp.CallToolRequest) (allowed bool, question *mcp.CallToolResult) {
	params := mcp.ElicitationParams{
		Message:         "A skill asks whether " + t.Name + " may run: " + reason,
		RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}},
	}
	if info := mcpserver.RequestProtocolInfoFromContext(ctx); info != nil && info.Modern {
		if answer := mcpserver.ElicitationResponse(req.Params.InputResponses, permissionID); answer != nil {
			return answer.Action == mcp.ElicitationResponseActionAccept, nil
		}
		if info.ClientCapabilities == nil || info.ClientCapabilities.Elicitation == nil {
			return false, nil
		}
		return false, mcpserver.NewInputRequestBuilder("").Elicit(permissionID, params).ToolResult()
	}
	asker := askerOf(ctx)
	if asker == nil {
		return false, nil
	}
	answer, err := asker.RequestElicitation(ctx, mcp.ElicitationRequest{Params: params})
	return err == nil && answer.Action == mcp.ElicitationResponseActionAccept, nil
}

// addMessages puts what hooks have to say behind the tool's own blocks.
func addMessages(r *mcp.CallToolResult, when, tool string, messages []string) {
	for _, m := range messages {
		r.Content = append(r.Content, mcp.TextContent{
			Type: mcp.ContentTypeText, Text: "[Skill Hook:" + when + ":" + tool + "]\n" + m,
			Annotated: mcp.Annotated{Annotations: &mcp.Annotations{Audience: []mcp.Role{mcp.RoleAssistant}}},
		})
	}
}

// blockText is the text blocks of a result, joined by line feeds.
func blockText(r *mcp.CallToolResult) string {
	var texts []string
	for _, c := range r.Content {
		if text, ok := c.(mcp.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	return strings.Join(texts, "\n")
}
