package server

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/server/internal/dispatch"
	"github.com/perstack-ai/perstack-base/server/internal/tasks"
	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/echo"
	"github.com/perstack-ai/perstack-base/tools/skills"
)

// maxInstructions bounds the words that all profiles together have for the
// model, in characters: a client repeats them with every conversation.
const maxInstructions = 2000

// maxCatalogue bounds the list of skills behind them, in bytes.
const maxCatalogue = 16 << 10

// instructing puts the instructions into each answer that carries them, as they
// are then: skills come and go.
func (s *Server) instructing(cfg Config) *mcpserver.Hooks {
	hooks := &mcpserver.Hooks{}
	hooks.AddAfterInitialize(func(_ context.Context, _ any, q *mcp.InitializeRequest, r *mcp.InitializeResult) {
		r.Instructions = s.instructions(cfg)
		r.Capabilities.Extensions = maps.Clone(r.Capabilities.Extensions)
		delete(r.Capabilities.Extensions, tasks.Extension) // of the modern era only
		if dispatch.DeclaresViews(q.Params.Capabilities.Extensions) {
			r.Capabilities.Extensions[dispatch.ViewsExtension] = struct{}{}
		}
	})
	hooks.AddAfterDiscover(func(ctx context.Context, _ any, _ *mcp.DiscoverRequest, r *mcp.DiscoverResult) {
		r.Instructions = s.instructions(cfg)
		if tools.TakesViews(ctx) {
			r.Capabilities.Extensions = maps.Clone(r.Capabilities.Extensions)
			r.Capabilities.Extensions[dispatch.ViewsExtension] = struct{}{}
			r.SetCacheHints(listTTL, mcp.CacheScopePrivate) // others are told otherwise
		}
	})
	hooks.AddAfterListTools(func(ctx context.Context, _ any, _ *mcp.ListToolsRequest, r *mcp.ListToolsResult) {
		if tools.TakesViews(ctx) && mcpserver.IsModernRequest(ctx) {
			r.SetCacheHints(listTTL, mcp.CacheScopePrivate) // others are told otherwise
		}
	})
	return hooks
}

// instructions are the words for the model: the server's own, then those of each
// profile that has a listed tool, then the list of skills.
func (s *Server) instructions(cfg Config) string {
	words := []string{"Paths are relative to the workspace, the only directory these tools can reach. A result that was cut says how to get the rest."}
	if s.http.handles() {
		words = append(words, "Pass the listId you were given to every later call on that list.")
	}
	if cfg.ReadOnly {
		words = append(words, "This server is read-only.")
	}
	for _, p := range slices.Concat(Profiles, cfg.Profiles) {
		if s.lists.has(p) && p.Instructions != "" {
			words = append(words, p.Instructions)
		}
	}
	text := []rune(strings.Join(words, " "))
	return string(text[:min(len(text), maxInstructions)]) + s.catalogue()
}

// catalogue is the list of skills behind the instructions, "" without a tool to load them.
func (s *Server) catalogue() string {
	tool := ""
	switch {
	case s.lists.has(skills.Profile):
		tool = "skill_load"
	case s.lists.has(echo.Profile):
		tool = "activate_skill"
	default:
		return ""
	}
	if list := s.repo.Catalogue(maxCatalogue, tool); list != "" {
		return "\n\n" + list
	}
	return ""
}
