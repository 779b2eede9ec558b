// Package server joins profiles, the sandbox and the transports into one MCP server.
//
// Start with [Config], whose zero value serves the default profile in the current
// directory, and [New]; then [Server.ServeStdio]. A program that embeds the server
// adds tools of its own by passing one more profile in Config.Profiles, and prompts,
// resources and methods by an [Extension].
//
// What clients send goes through a transport (internal/stream, internal/web) to the
// dispatcher (internal/dispatch), and from there to a tool, to internal/skillsapi or
// to mcp-go; internal/jsonrpc has the messages.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/files"
	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/sandbox/process/quota"
	"github.com/perstack-ai/perstack-base/server/internal/dispatch"
	"github.com/perstack-ai/perstack-base/server/internal/skillsapi"
	"github.com/perstack-ai/perstack-base/server/internal/tasks"
	"github.com/perstack-ai/perstack-base/skillrepo"
	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/baseagent"
	"github.com/perstack-ai/perstack-base/tools/echo"
	"github.com/perstack-ai/perstack-base/tools/perstack"
	"github.com/perstack-ai/perstack-base/tools/skills"
	"github.com/perstack-ai/perstack-base/tools/terminal"
	"github.com/perstack-ai/perstack-base/tools/vski"
)

// Profiles are the profiles of this binary, in the order in which their
// instructions are given. The one list.
var Profiles = []*tools.Profile{perstack.Profile, vski.Profile, skills.Profile, baseagent.Profile, echo.Profile, terminal.Profile}

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

// MinTimeout and MaxTimeout bound Config.Timeout: every tool that runs commands
// takes a deadline between them.
const (
	MinTimeout = time.Millisecond
	MaxTimeout = 24 * time.Hour
)

// When a call becomes a task, and how long its result is kept, where Config does not say.
const (
	DefaultTaskAfter = 10 * time.Second
	DefaultTaskTTL   = time.Hour
)

// taskEnd is what tasks have to come to their end when no command of theirs runs any more.
const taskEnd = 500 * time.Millisecond

// listTTL is how many milliseconds a client may keep a list.
const listTTL = 60_000

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

	TaskAfter time.Duration // a call that takes longer becomes a task, where clients take tasks; 0 = [DefaultTaskAfter], less = at once
	TaskTTL   time.Duration // the results of tasks are kept; 0 = [DefaultTaskTTL]

	Skills     []string // directories to look for trusted skills in
	NoDiscover bool     // look nowhere else

	Sandbox    process.Mode      // how far commands are confined
	Container  process.Container // in which they run; the zero value: in none
	Network    process.Network   // what of the network commands may use; the zero value: nothing
	AllowRead  []string          // absolute paths that commands may read besides
	AllowWrite []string          // absolute paths that commands may write besides
	Quota      quota.Limits      // what the commands of one session may use together; the zero value: no bound

	// TraceFile is the file that spans are appended to, a line of OTLP/JSON for each; ""
	// = no spans. It must lie where no command writes.
	TraceFile string

	Version string       // shown to clients; "" = "dev"
	Log     *slog.Logger // nil = silent
	HTTP    *HTTP        // for ServeListener; nil = stdio

	Extension *Extension // what the embedding program adds besides Profiles; nil = nothing
}

// A Server serves one workspace. Make one with [New], end it with Close.
type Server struct {
	mcp      *mcpserver.MCPServer
	env      *tools.Env
	http     *HTTP // nil = stdio
	commands *process.Commands
	repo     *skillrepo.Repo
	trusting bool // skills may bring commands along that run without a tool

	lists      lists
	sessions   sessions
	tasks      *tasks.Registry
	dispatcher dispatch.Dispatcher
	traces     traces

	running context.Context // until Close
	stop    context.CancelFunc
	watched sync.Once
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
	if err := cfg.check(); err != nil {
		return nil, err
	}
	s := &Server{http: cfg.HTTP, trusting: len(cfg.Skills) > 0 && !cfg.ReadOnly}
	profiles := slices.Concat(Profiles, cfg.Profiles)
	s.lists.known = allTools(profiles)
	var err error
	if s.lists.choices, err = choose(profiles, cfg); err != nil {
		return nil, err
	}
	if err := s.openWorkspace(cfg); err != nil {
		return nil, err
	}
	if err := s.traces.open(cfg, s.commands); err != nil {
		return nil, errors.Join(err, s.commands.Close(), s.env.Files.Close())
	}
	s.tasks = tasks.New(cmp.Or(cfg.TaskAfter, DefaultTaskAfter), cmp.Or(cfg.TaskTTL, DefaultTaskTTL))
	s.running, s.stop = context.WithCancel(context.Background())
	if err := s.openSkills(cfg); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.join(cfg)
	return s, nil
}

func (cfg *Config) check() error {
	if cfg.Timeout != 0 && (cfg.Timeout < MinTimeout || cfg.Timeout > MaxTimeout) {
		return fmt.Errorf("the timeout of commands must be from %v to %v, not %v", MinTimeout, MaxTimeout, cfg.Timeout)
	}
	if cfg.HTTP != nil {
		return cfg.HTTP.check()
	}
	return nil
}

// join makes mcp-go's server, fills its lists, and says who answers what.
func (s *Server) join(cfg Config) {
	identity := mcp.Implementation{Name: Name, Title: Title, Version: cfg.Version, WebsiteURL: Website}
	skills := &skillsapi.API{Repo: s.repo, Engine: s.env.Skills, Identity: identity, PageSize: pageSize, Foreign: cfg.Extension.registers()}
	s.mcp = mcpserver.NewMCPServer(Name, cfg.Version, s.options(cfg, skills)...)
	skills.MCP = s.mcp
	skills.AddTemplates()
	s.lists.mcp, s.lists.env, s.lists.skills = s.mcp, s.env, skills
	s.lists.sync()
	if cfg.Extension.registers() {
		cfg.Extension.Register(s.mcp)
	}
	s.sessions.commands, s.sessions.skills = s.commands, s.env.Skills
	s.dispatcher = dispatch.Dispatcher{
		Router: s.mcp, Tools: &s.lists, Tasks: s.tasks, Identity: identity, Log: cfg.Log, Trace: s.traces.tracer,
		Methods: &methods{lists: &s.lists, skills: skills, extension: cfg.Extension},
	}
}

func (s *Server) openWorkspace(cfg Config) error {
	limits := sandbox.DefaultLimits
	dir := cfg.Workspace
	if dir == "" {
		dir = "."
	}
	files, err := files.Open(dir, limits)
	if err != nil {
		return fmt.Errorf("cannot open the workspace %s: %w", dir, err)
	}
	files.Guarded = cfg.Sandbox == process.Isolate
	s.commands, err = process.NewCommands(process.Config{
		Dir: files.Root(), Limits: limits, PassEnv: cfg.PassEnv, NoCache: cfg.NoCache,
		Sandbox: cfg.Sandbox, Container: cfg.Container, Network: cfg.Network, AllowRead: cfg.AllowRead, AllowWrite: cfg.AllowWrite, Quota: cfg.Quota, Log: cfg.Log,
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
func (s *Server) options(cfg Config, skills *skillsapi.API) []mcpserver.ServerOption {
	scope := mcp.CacheScopePublic
	if s.http != nil && s.http.Token != "" {
		scope = mcp.CacheScopePrivate
	}
	options := []mcpserver.ServerOption{
		mcpserver.WithTitle(Title),
		mcpserver.WithWebsiteURL(Website),
		mcpserver.WithHooks(s.instructing(cfg)),
		mcpserver.WithToolCapabilities(true),
		mcpserver.WithToolFilter(s.lists.complete),
		mcpserver.WithResourceCapabilities(false, true),
		mcpserver.WithPromptCapabilities(true),
		mcpserver.WithCompletions(),
		mcpserver.WithResourceCompletionProvider(skills),
		mcpserver.WithExtensions(map[string]any{skillsapi.Extension: map[string]any{"directoryRead": true}, tasks.Extension: map[string]any{}}),
		mcpserver.WithPaginationLimit(pageSize),
		mcpserver.WithCacheHints(listTTL, scope),
		mcpserver.WithMethodCacheHints(mcp.MethodResourcesList, 10_000, mcp.CacheScopePrivate),
		mcpserver.WithMethodCacheHints(mcp.MethodResourcesRead, 10_000, mcp.CacheScopePrivate),
	}
	if cfg.Extension != nil {
		options = append(options, cfg.Extension.Options...)
	}
	return options
}

// Close ends every command and removes what the sessions left on the machine.
func (s *Server) Close() error {
	s.stop()
	s.tasks.Close()
	err := s.commands.Close()
	s.tasks.Wait(taskEnd)
	s.sessions.end()
	return errors.Join(err, s.env.Files.Close(), s.traces.close())
}

// drain has commands end, and calls answered: the server is about to end.
func (s *Server) drain() {
	s.tasks.Drain()
	s.commands.Terminate()
}

// Workspace returns the directory that is served, all links resolved.
func (s *Server) Workspace() string { return s.env.Files.Root() }

// Commands returns what runs the server's commands, for a look at how they are confined.
func (s *Server) Commands() *process.Commands { return s.commands }

// RunsCommands tells whether a client of this server can have commands run: by a
// tool that may be listed, or by a trusted skill.
func (s *Server) RunsCommands() bool {
	runs := func(c selected) bool { return c.tool.Effect.OpenWorld }
	return slices.ContainsFunc(s.lists.choices.with, runs) || s.trusting && slices.ContainsFunc(s.lists.choices.with, func(c selected) bool {
		return c.profile == skills.Profile || c.profile == echo.Profile
	})
}

// OwnerHint says what to do when the tools of this server cannot write because a
// container runs as another user than the owner of the workspace; "" otherwise.
func (s *Server) OwnerHint() string {
	if s.env.Settings.ReadOnly {
		return ""
	}
	return s.env.Files.OwnerHint()
}

// Kill ends every command at once.
func (s *Server) Kill() { s.commands.Kill() }

// Listed returns the tools as this server lists them, by name.
func (s *Server) Listed() []Listed {
	chosen := s.lists.chosen()
	all := make([]Listed, len(chosen))
	for i, c := range chosen {
		all[i] = Listed{Profile: c.profile, Tool: c.bound().Tool}
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
	if tool := s.lists.Tool(name); tool != nil {
		return *tool, nil
	}
	return mcp.Tool{}, errors.New(s.lists.unknownTool(name))
}

// Unlisted returns the tools of this binary that this server does not list, each
// as PROFILE.TOOL, in the order of the profiles.
func (s *Server) Unlisted() (names []string) {
	for _, k := range s.lists.known {
		if !slices.ContainsFunc(s.lists.chosen(), func(e entry) bool { return e.tool == k.tool }) {
			names = append(names, k.name())
		}
	}
	return names
}

// Call runs one tool as a client would, in a session of its own, and returns its
// result. An unknown tool is an error.
func (s *Server) Call(ctx context.Context, name string, args map[string]any) (*mcp.CallToolResult, error) {
	tool := s.lists.registered(name)
	if tool == nil {
		return nil, errors.New(s.lists.unknownTool(name))
	}
	session, end := s.sessions.begin("call", true)
	defer end()
	var req mcp.CallToolRequest
	req.Params.Name, req.Params.Arguments = name, args
	return dispatch.CallTool(tools.WithSession(ctx, session), s.traces.tracer, req, tool.Handler)
}
