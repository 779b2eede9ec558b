package server

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/skillrepo"
	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/echo"
	"github.com/perstack-ai/perstack-base/tools/skills"
)

// maxCatalogue bounds the list of skills in the instructions, in bytes.
const maxCatalogue = 16 << 10

// A skillState is what a server has told its clients of skills.
type skillState struct {
	chosen atomic.Pointer[[]selected] // listed, by name

	mu      sync.Mutex
	told    string   // what the lists were made of
	prompts []string // skills that have one

	published memo

	watch sync.Once
	ctx   context.Context
	stop  context.CancelFunc
}

// A memo is the published skills as they were a moment ago, for the pages of one list.
type memo struct {
	mu   sync.Mutex
	list []*skillrepo.Published
	made time.Time
}

// fresh is how old what was read of the disk may be, to be shown as what is there.
const fresh = 250 * time.Millisecond

// published are the skills that a strict host accepts, by URI.
func (s *Server) published(ctx context.Context) ([]*skillrepo.Published, error) {
	m := &s.skills.published
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); now.Sub(m.made) > fresh {
		list, err := s.repo.Published(ctx)
		if err != nil {
			return nil, err
		}
		m.list, m.made = list, now
	}
	return m.list, nil
}

func (k *skillState) end() {
	if k.stop != nil {
		k.stop()
	}
}

// chosen are the listed tools, by name.
func (s *Server) chosen() []selected { return *s.skills.chosen.Load() }

// Roots are the directories in which skills are looked for, in their precedence:
// those that the user named, then the workspace's and the user's own. Commands may
// write the workspace and what is writable besides, so no link there is trusted.
func Roots(files *sandbox.FS, dirs []string, discover bool, writable ...string) ([]skillrepo.Root, error) {
	var roots []skillrepo.Root
	writable = append([]string{files.Root()}, writable...)
	for _, dir := range dirs {
		if strings.TrimSpace(dir) == "" {
			continue
		}
		root, err := hostRoot(dir)
		if err != nil {
			return nil, fmt.Errorf("--skills %s: %w", dir, err)
		}
		root.Trusted, root.Writable = true, writable
		roots = append(roots, root)
	}
	if !discover {
		return roots, nil
	}
	for _, dir := range []string{"skills", ".agents/skills"} {
		top := strings.TrimSuffix(files.Root(), "/")
		roots = append(roots, skillrepo.Root{FS: files.Tree(), Path: dir, Dir: top + "/" + dir})
	}
	if home := sandbox.HomeDir(); home != "" {
		if root, err := hostRoot(home + "/.agents/skills"); err == nil {
			root.Writable = writable
			roots = append(roots, root)
		}
	}
	return roots, nil
}

func hostRoot(dir string) (skillrepo.Root, error) {
	tree, path, abs, err := sandbox.HostTree(dir)
	return skillrepo.Root{FS: tree, Path: path, Dir: abs}, err
}

// openSkills looks for skills and makes the engine that serves them.
func (s *Server) openSkills(cfg Config) error {
	roots, err := Roots(s.env.Files, cfg.Skills, !cfg.NoDiscover, cfg.AllowWrite...)
	if err != nil {
		return err
	}
	s.skills.ctx, s.skills.stop = context.WithCancel(context.Background())
	log := func(d skillrepo.Diagnostic) { cfg.Log.Warn(d.Message, "skill", d.Path) }
	if s.repo, err = skillrepo.Open(s.skills.ctx, roots, skillrepo.Options{Log: log}); err != nil {
		return err
	}
	s.env.Skills = &tools.Skills{
		Repo: s.repo, Files: s.env.Files, Workdirs: sandbox.NewWorkdirs(s.env.Files.Root(), cfg.AllowWrite...), Log: cfg.Log,
		HostEnv: s.commands.Env, PassEnv: cfg.PassEnv, AllowRead: cfg.AllowRead, AllowWrite: cfg.AllowWrite, ReadOnly: cfg.ReadOnly, Network: cfg.Network,
		Confined: func() bool { ok, _ := s.commands.Confined(); return ok },
	}
	return nil
}

// sweepEvery is how often run workspaces that nobody owns are looked for.
const sweepEvery = time.Hour

// watchSkills keeps the lists up with the disk until the server ends.
func (s *Server) watchSkills() {
	go s.repo.Watch(s.skills.ctx, s.sync)
	go func() {
		tick := time.NewTicker(sweepEvery)
		defer tick.Stop()
		for {
			s.env.Skills.Workdirs.Sweep()
			select {
			case <-tick.C:
			case <-s.skills.ctx.Done():
				return
			}
		}
	}()
}

// look looks at the disk anew before the lists are shown.
func (s *Server) look(ctx context.Context) {
	if s.repo.Refresh(ctx) == nil {
		s.sync()
	}
}

// seek looks once more for the skill whose prompt is asked for, when it is unknown:
// it may have come since the disk was looked at.
func (s *Server) seek(ctx context.Context, r *request) {
	var asked struct{ Name string }
	if r.method != "prompts/get" || json.Unmarshal(r.params, &asked) != nil || s.mcp.ListPrompts()[asked.Name] != nil {
		return
	}
	if _, ok := s.repo.Get(ctx, asked.Name); ok {
		s.sync()
	}
}

// sync makes tools and prompts what the known skills make of them, and tells
// clients when that is a change.
func (s *Server) sync() {
	s.skills.mu.Lock()
	defer s.skills.mu.Unlock()
	list := s.repo.List()
	now := "skills:"
	for _, sk := range list {
		now += fmt.Sprintf("%q %q %q\n", sk.Name, sk.Description, sk.Paths)
	}
	if now == s.skills.told {
		return
	}
	first := s.skills.told == ""
	s.skills.told = now
	if !s.syncTools(len(list) > 0) && !first {
		s.mcp.SendNotificationToAllClients(mcp.MethodNotificationToolsListChanged, nil)
	}
	if !s.syncPrompts(list) && !first {
		s.mcp.SendNotificationToAllClients(mcp.MethodNotificationPromptsListChanged, nil)
	}
	if !first {
		s.mcp.SendNotificationToAllClients(mcp.MethodNotificationResourcesListChanged, nil)
	}
}

// syncTools lists the tools, those that changed anew; it reports whether any did.
func (s *Server) syncTools(known bool) bool {
	chosen := s.choices.without
	if known {
		chosen = s.choices.with
	}
	var before []selected
	if old := s.skills.chosen.Swap(&chosen); old != nil {
		before = *old
	}
	var changed []mcpserver.ServerTool
	for _, c := range chosen {
		fresh, old := c.tool.Bind(s.env, c.profile), s.mcp.GetTool(c.tool.Name)
		if old == nil || old.Tool.Description != fresh.Tool.Description || string(old.Tool.RawInputSchema) != string(fresh.Tool.RawInputSchema) {
			changed = append(changed, fresh)
		}
	}
	var gone []string
	for _, b := range before {
		if !slices.ContainsFunc(chosen, func(c selected) bool { return c.tool == b.tool }) {
			gone = append(gone, b.tool.Name)
		}
	}
	if len(changed) > 0 {
		s.mcp.AddTools(changed...)
	}
	if len(gone) > 0 {
		s.mcp.DeleteTools(gone...)
	}
	return len(changed)+len(gone) > 0
}

// syncPrompts has one prompt for each skill; it reports whether any changed.
func (s *Server) syncPrompts(list []*skillrepo.Skill) bool {
	old := s.mcp.ListPrompts()
	gone := s.skills.prompts
	s.skills.prompts = nil
	var changed []mcpserver.ServerPrompt
	for _, sk := range list {
		if p := old[sk.Name]; p == nil || p.Prompt.Description != sk.Description {
			changed = append(changed, s.prompt(sk))
		}
		s.skills.prompts = append(s.skills.prompts, sk.Name)
	}
	gone = slices.DeleteFunc(gone, func(name string) bool { return slices.Contains(s.skills.prompts, name) })
	if len(changed) > 0 {
		s.mcp.AddPrompts(changed...)
	}
	if len(gone) > 0 {
		s.mcp.DeletePrompts(gone...)
	}
	return len(changed)+len(gone) > 0
}

// prompt activates a skill and shows it in full: the user's own act.
func (s *Server) prompt(sk *skillrepo.Skill) mcpserver.ServerPrompt {
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

// catalogue is the list of skills behind the instructions, "" without a tool to load them.
func (s *Server) catalogue() string {
	tool := ""
	switch {
	case s.lists(skills.Profile):
		tool = "skill_load"
	case s.lists(echo.Profile):
		tool = "activate_skill"
	default:
		return ""
	}
	if list := s.repo.Catalogue(maxCatalogue, tool); list != "" {
		return "\n\n" + list
	}
	return ""
}

// A completer completes the variables of the resource templates.
type completer struct{ s *Server }

// maxCompletions is what the protocol lets one answer carry.
const maxCompletions = 100

// CompleteResourceArgument implements [mcpserver.ResourceCompletionProvider].
func (c completer) CompleteResourceArgument(ctx context.Context, uri string, arg mcp.CompleteArgument, _ mcp.CompleteContext) (*mcp.Completion, error) {
	var names []string
	switch {
	case uri == skillTemplate && arg.Name == "path":
		names = c.s.publishedPaths(ctx)
	case uri == artifactTemplate && arg.Name == "name":
		names = c.s.env.Skills.Workdirs.Artifacts().Names()
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, arg.Value) })
	slices.Sort(names)
	shown := names[:min(len(names), maxCompletions)]
	return &mcp.Completion{Values: append([]string{}, shown...), Total: len(names), HasMore: len(shown) < len(names)}, nil
}
