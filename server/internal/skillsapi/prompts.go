package skillsapi

import (
	"context"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/skillrepo"
	"github.com/perstack-ai/perstack-base/tools"
)

// SyncPrompts has one prompt for each skill; it reports whether any
// changed. It must not run twice at a time.
func (a *API) SyncPrompts(list []*skillrepo.Skill) bool {
	old := a.MCP.ListPrompts()
	gone := a.prompts
	a.prompts = nil
	var changed []mcpserver.ServerPrompt
	for _, sk := range list {
		if p := old[sk.Name]; p == nil || p.Prompt.Description != sk.Description {
			changed = append(changed, a.prompt(sk))
		}
		a.prompts = append(a.prompts, sk.Name)
	}
	gone = slices.DeleteFunc(gone, func(name string) bool { return slices.Contains(a.prompts, name) })
	if len(changed) > 0 {
		a.MCP.AddPrompts(changed...)
	}
	if len(gone) > 0 {
		a.MCP.DeletePrompts(gone...)
	}
	return len(changed)+len(gone) > 0
}

// prompt activates a skill and shows it in full: the user's own act.
func (a *API) prompt(sk *skillrepo.Skill) mcpserver.ServerPrompt {
	name := sk.Name
	return mcpserver.ServerPrompt{
		Prompt: mcp.NewPrompt(name, mcp.WithPromptDescription(sk.Description),
			mcp.WithArgument("arguments", mcp.ArgumentDescription("Arguments for the skill, separated by blanks."))),
		Handler: func(ctx context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			text, err := tools.SessionOf(ctx).Skills.Open(ctx, name, strings.Fields(req.Params.Arguments["arguments"]))
			if err != nil {
				return nil, err
			}
			return mcp.NewGetPromptResult(sk.Description, []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent(text))}), nil
		},
	}
}
