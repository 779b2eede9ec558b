// Package server joins profiles, the sandbox and the transports into one MCP server.
//
// Start with [Config], whose zero value serves the default profile in the current
// directory, and [New]; then [Server.ServeStdio]. A program that embeds the server
// adds tools of its own by passing one more profile in Config.Profiles.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/skillrepo"
	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/baseagent"
	"github.com/perstack-ai/perstack-base/tools/echo"
	"github.com/perstack-ai/perstack-base/tools/perstack"
	"github.com/perstack-ai/perstack-base/tools/skills"
	"github.com/perstack-ai/perstack-base/tools/vski"
)

// Profiles are the profiles of this binary, in the order in which their
// instructions are given. The one list.
var Profiles = []*tools.Profile{perstack.Profile, vski.Profile, skills.Profile, baseagent.Profile, echo.Profile}

// DefaultTools is the selection when --tools says nothing, SkillTools what joins
// it as long as a skill is known.
var (
	DefaultTools = []string{perstack.Profile.Name}
	SkillTools   = []string{skills.Profile.Name}
)

// Name and Website are how the server calls itself.
const (
	Name    = "perstack-base"
	Title   = "Perstack Base"
	Website = "https://github.com/perstack-ai/perstack-base"
)

// maxInstructions bounds the words that all profiles together have for the
// model, in characters: a client repeats them with every conversation.
const maxInstructions = 2000

// MinTimeout and MaxTimeout bound Config.Timeout: every tool that runs commands
// takes a deadline between them.
const (
	MinTimeout = time.Millisecond
	MaxTimeout = 24 * time.Hour
)

// pageSize is the number of entries in one page of any list.
const pageSize = 200

// A Config says what to serve. The zero value works: the default tools in the
// current directory.
type Config struct {
	Workspace string           // directory; "" = the current one
	Tools     []string         // selection, see --tools; empty = the default
	Profiles  []*tools.Profile // compiled in besides Profiles
	ReadOnly  bool             // leave out tools that change files or run commands
	MaxOutput int              // bytes of text in a result; 0 = each profile's own budget
	Timeout   time.Duration    // of commands that ask for none; 0 = each tool's own
	PassEnv   []string         // patterns of withheld variable names that commands may see
	NoCache   bool             // what build tools keep for later ends with the session

	Skills     []string // directories to look for trusted skills in
	NoDiscover bool     // look nowhere else

	Sandbox    sandbox.Mode // how far commands are confined
	Network    bool         // commands may use the network
	AllowRead  []string     // absolute paths that commands may read besides
	AllowWrite []string     // absolute paths that commands may write besides

	Version string       // shown to clients; "" = "dev"
	Log     *slog.Logger // nil = silent
	HTTP    *HTTP        // for ServeListener; nil = stdio
}

// A Server serves one workspace. Make one with [New], end it with Close.
type Server struct {
	mcp      *mcpserver.MCPServer
	env      *tools.Env
	http     *HTTP // nil = stdio
	commands *sandbox.Commands
	choices  choices
	known    []selected // every tool of every profile
	repo     *skillrepo.Repo
	version  string
	trusting bool // skills may bring commands along that run without a tool
	skills   skillState
	sessions sessions
}

// New opens the workspace and registers the selected tools. It has no side
// effect on the machine: clients start a server just to look at it.
func New(cfg Config) (*Server, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Version == "" {
		cfg.Version = "dev"
	}
	if cfg.Timeout != 0 && (cfg.Timeout < MinTimeout || cfg.Timeout > MaxTimeout) {
		return nil, fmt.Errorf("the timeout of commands must be from %v to %v, not %v", MinTimeout, MaxTimeout, cfg.Timeout)
	}
	s := &Server{version: cfg.Version, http: cfg.HTTP, trusting: len(cfg.Skills) > 0 && !cfg.ReadOnly}
	if s.http != nil {
		if err := s.http.check(); err != nil {
			return nil, err
		}
	}
	if err := s.selectTools(cfg); err != nil {
		return nil, err
	}
	if err := s.openWorkspace(cfg); err != nil {
		return nil, err
	}
	if err := s.openSkills(cfg); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.mcp = mcpserver.NewMCPServer(Name, cfg.Version, s.options(cfg)...)
	s.addTemplates()
	s.sync()
	if extras.register != nil {
		extras.register(s)
	}
	return s, nil
}

// extras are what a build with the tag conformance adds: fixtures that the
// official test suite wants to find in a server. Every other build has none.
var extras struct {
	options   []mcpserver.ServerOption
	register  func(*Server)
	intercept func(*request) (any, *rpcError, bool)
}

func (s *Server) selectTools(cfg Config) error {
	profiles := slices.Concat(Profiles, cfg.Profiles)
	var err error
	if s.choices, err = choose(profiles, cfg); err != nil {
		return err
	}
	for _, p := range profiles {
		for _, t := range p.Tools {
			s.known = append(s.known, selected{p, t})
		}
	}
	return nil
}

func (s *Server) openWorkspace(cfg Config) error {
	limits := sandbox.DefaultLimits
	dir := cfg.Workspace
	if dir == "" {
		dir = "."
	}
	files, err := sandbox.Open(dir, limits)
	if err != nil {
		return fmt.Errorf("cannot open the workspace %s: %w", dir, err)
	}
	files.Guarded = cfg.Sandbox == sandbox.Isolate
	s.commands, err = sandbox.NewCommands(sandbox.Config{
		Dir: files.Root(), Limits: limits, PassEnv: cfg.PassEnv, NoCache: cfg.NoCache,
		Sandbox: cfg.Sandbox, Network: cfg.Network, AllowRead: cfg.AllowRead, AllowWrite: cfg.AllowWrite,
	})
	if err != nil {
		return errors.Join(err, files.Close())
	}
	s.env = &tools.Env{
		Files: files, Limits: limits, Log: cfg.Log,
		Settings: tools.Settings{MaxOutput: cfg.MaxOutput, Timeout: cfg.Timeout, ReadOnly: cfg.ReadOnly, CommandRules: s.commands.Rules, Handles: s.http.handles()},
	}
	return nil
}

// options are what mcp-go is told. Its recovery and validation stay off: every
// handler recovers and validates itself, in words for a model.
func (s *Server) options(cfg Config) []mcpserver.ServerOption {
	scope := mcp.CacheScopePublic
	if s.http != nil && s.http.Token != "" {
		scope = mcp.CacheScopePrivate
	}
	return append([]mcpserver.ServerOption{
		mcpserver.WithTitle(Title),
		mcpserver.WithWebsiteURL(Website),
		mcpserver.WithHooks(s.instructing(cfg)),
		mcpserver.WithToolCapabilities(true),
		mcpserver.WithResourceCapabilities(false, true),
		mcpserver.WithPromptCapabilities(true),
		mcpserver.WithCompletions(),
		mcpserver.WithResourceCompletionProvider(completer{s}),
		mcpserver.WithExtensions(map[string]any{skillsExtension: map[string]any{"directoryRead": true}}),
		mcpserver.WithPaginationLimit(pageSize),
		mcpserver.WithCacheHints(60_000, scope),
		mcpserver.WithMethodCacheHints(mcp.MethodResourcesList, 10_000, mcp.CacheScopePrivate),
		mcpserver.WithMethodCacheHints(mcp.MethodResourcesRead, 10_000, mcp.CacheScopePrivate),
	}, extras.options...)
}

// instructing puts the instructions into each answer that carries them, as they
// are then: skills come and go.
func (s *Server) instructing(cfg Config) *mcpserver.Hooks {
	hooks := &mcpserver.Hooks{}
	hooks.AddAfterInitialize(func(_ context.Context, _ any, _ *mcp.InitializeRequest, r *mcp.InitializeResult) {
		r.Instructions = s.instructions(cfg)
	})
	hooks.AddAfterDiscover(func(_ context.Context, _ any, _ *mcp.DiscoverRequest, r *mcp.DiscoverResult) {
		r.Instructions = s.instructions(cfg)
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
		if s.lists(p) && p.Instructions != "" {
			words = append(words, p.Instructions)
		}
	}
	text := []rune(strings.Join(words, " "))
	return string(text[:min(len(text), maxInstructions)]) + s.catalogue()
}

// lists tells whether a tool of the profile is listed.
func (s *Server) lists(p *tools.Profile) bool {
	return slices.ContainsFunc(s.chosen(), func(c selected) bool { return c.profile == p })
}

// Close ends every command and removes what the sessions left on the machine.
func (s *Server) Close() error {
	s.skills.end()
	err := s.commands.Close()
	s.sessions.end()
	return errors.Join(err, s.env.Files.Close())
}

// Workspace returns the directory that is served, all links resolved.
func (s *Server) Workspace() string { return s.env.Files.Root() }

// Commands returns what runs the server's commands, for a look at how they are confined.
func (s *Server) Commands() *sandbox.Commands { return s.commands }

// RunsCommands tells whether a client of this server can have commands run: by a
// tool that may be listed, or by a trusted skill.
func (s *Server) RunsCommands() bool {
	runs := func(c selected) bool { return c.tool.Effect.OpenWorld }
	return slices.ContainsFunc(s.choices.with, runs) || s.trusting && slices.ContainsFunc(s.choices.with, func(c selected) bool {
		return c.profile == skills.Profile || c.profile == echo.Profile
	})
}

// OwnerHint says what to do when the tools of this server cannot write because a
// container runs as somebody other than the owner of the workspace; "" otherwise.
func (s *Server) OwnerHint() string {
	if s.env.Settings.ReadOnly {
		return ""
	}
	return s.env.Files.OwnerHint()
}

// Kill ends every command at once.
func (s *Server) Kill() { s.commands.Kill() }

// newSession makes the session of one connection. end drops it.
func (s *Server) newSession(id string) (session *tools.Session, end func()) {
	return s.begin(id, false)
}

// newCall is newSession for a single call that nothing comes before or after.
func (s *Server) newCall(id string) (session *tools.Session, end func()) {
	session, end = s.begin(id, true)
	session.OneCall = true
	return session, end
}

// begin makes a session; for a single call every skill is as if it were activated.
func (s *Server) begin(id string, single bool) (session *tools.Session, end func()) {
	shell := s.commands.NewShell()
	session = tools.NewSession(id, shell)
	session.Skills = s.env.Skills.NewSession(shell, single)
	return session, s.sessions.begin(func() {
		shell.Close()
		session.Skills.Close()
	})
}

// unknownTool words the refusal of a name that is not listed: perhaps it is
// nearly one, perhaps it exists and was not selected.
func (s *Server) unknownTool(name string) string {
	chosen := s.chosen()
	names := make([]string, len(chosen))
	for i, c := range chosen {
		names[i] = c.tool.Name
	}
	text := fmt.Sprintf("Unknown tool %q.", name)
	if i := slices.IndexFunc(s.known, func(k selected) bool { return k.tool.Name == name }); i >= 0 {
		k := s.known[i]
		text += s.whyNotListed(k)
	} else if near := Nearest(name, names); near != "" {
		text += fmt.Sprintf(" Did you mean %q?", near)
	}
	return text + " Tools: " + strings.Join(names, ", ") + "."
}

func (s *Server) whyNotListed(k selected) string {
	if s.env.Settings.ReadOnly && !k.tool.Effect.AllowedReadOnly() {
		return " It is left out because this server is read-only (--read-only)."
	}
	return fmt.Sprintf(" It exists as %s but is not selected; start the server with --tools %s to have it.", k.name(), k.name())
}

// Listed returns the tools as this server lists them, by name.
func (s *Server) Listed() []Listed {
	chosen := s.chosen()
	all := make([]Listed, len(chosen))
	for i, c := range chosen {
		all[i] = Listed{Profile: c.profile, Tool: s.mcp.GetTool(c.tool.Name).Tool}
	}
	return all
}

// A Listed tool is one entry of tools/list, with the profile it belongs to.
type Listed struct {
	Profile *tools.Profile
	Tool    mcp.Tool
}

// Tool returns the listed tool of that name. That there is none is an error that
// says why.
func (s *Server) Tool(name string) (mcp.Tool, error) {
	if tool := s.mcp.GetTool(name); tool != nil {
		return tool.Tool, nil
	}
	return mcp.Tool{}, errors.New(s.unknownTool(name))
}

// Unlisted returns the tools of this binary that this server does not list, each
// as PROFILE.TOOL, in the order of the profiles.
func (s *Server) Unlisted() (names []string) {
	for _, k := range s.known {
		if !slices.ContainsFunc(s.chosen(), func(c selected) bool { return c.tool == k.tool }) {
			names = append(names, k.name())
		}
	}
	return names
}

// Call runs one tool as a client would, in a session of its own, and returns its
// result. An unknown tool is an error.
func (s *Server) Call(ctx context.Context, name string, args map[string]any) (*mcp.CallToolResult, error) {
	tool := s.mcp.GetTool(name)
	if tool == nil {
		return nil, errors.New(s.unknownTool(name))
	}
	session, end := s.begin("call", true)
	defer end()
	var req mcp.CallToolRequest
	req.Params.Name, req.Params.Arguments = name, args
	return tool.Handler(tools.WithSession(ctx, session), req)
}
