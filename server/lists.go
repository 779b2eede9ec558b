package server

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/server/internal/dispatch"
	"github.com/perstack-ai/perstack-base/server/internal/skillsapi"
	"github.com/perstack-ai/perstack-base/skillrepo"
	"github.com/perstack-ai/perstack-base/tools"
)

// lists are the tools and prompts that clients are shown, as the known skills make
// them. They implement [dispatch.Tools].
type lists struct {
	mcp     *mcpserver.MCPServer
	env     *tools.Env
	skills  *skillsapi.API
	known   []selected // every tool of every profile
	choices choices

	listed atomic.Pointer[[]entry] // by name

	mu     sync.Mutex
	shown  string             // what the lists were made of
	synced []*skillrepo.Skill // the same, as they were listed
}

var _ dispatch.Tools = (*lists)(nil)

// chosen are the listed tools, by name.
func (l *lists) chosen() []entry { return *l.listed.Load() }

// has tells whether a tool of the profile is listed.
func (l *lists) has(p *tools.Profile) bool {
	return slices.ContainsFunc(l.chosen(), func(e entry) bool { return e.profile == p })
}

// find returns the listed tool of that name, nil when there is none.
func (l *lists) find(name string) *entry {
	chosen := l.chosen()
	i := slices.IndexFunc(chosen, func(e entry) bool { return e.tool.Name == name })
	if i < 0 {
		return nil
	}
	return &chosen[i]
}

// registered returns a tool with what runs it, nil when there is none of that name.
func (l *lists) registered(name string) *mcpserver.ServerTool {
	if e := l.find(name); e != nil {
		t := e.bound()
		return &t
	}
	return l.mcp.GetTool(name) // of an Extension
}

// Tool returns what tools/list says of a tool, nil when there is none of that name.
func (l *lists) Tool(name string) *mcp.Tool {
	if t := l.registered(name); t != nil {
		return &t.Tool
	}
	return nil
}

// Handler returns what runs a listed tool of a profile. What an [Extension] has
// registered is left to mcp-go.
func (l *lists) Handler(name string) mcpserver.ToolHandlerFunc {
	if e := l.find(name); e != nil {
		return e.bound().Handler
	}
	return nil
}

// Lane is the queue that calls of a tool wait in, "" for none.
func (l *lists) Lane(name string) string {
	if e := l.find(name); e != nil {
		return string(e.tool.Lane)
	}
	return ""
}

// Lasts implements [dispatch.Tools]. What an [Extension] has registered may: it says
// so by beginning a task.
func (l *lists) Lasts(name string) bool {
	if e := l.find(name); e != nil {
		return e.tool.Effect == tools.Runs
	}
	return true
}

// refresh looks at the disk again before the lists are shown.
func (l *lists) refresh(ctx context.Context) {
	if l.skills.Repo.Refresh(ctx) == nil {
		l.sync()
	}
}

// refreshPrompt looks once more for the skill whose prompt is asked for, when it is
// unknown: it may have come since the disk was looked at.
func (l *lists) refreshPrompt(ctx context.Context, r *dispatch.Request) {
	var asked struct{ Name string }
	if r.Method != "prompts/get" || json.Unmarshal(r.Params, &asked) != nil || l.mcp.ListPrompts()[asked.Name] != nil {
		return
	}
	if _, ok := l.skills.Repo.Get(ctx, asked.Name); ok {
		l.sync()
	}
}

// sync makes tools and prompts what the known skills make of them, and tells
// clients when that is a change.
func (l *lists) sync() {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.skills.Repo.List()
	if l.shown != "" && slices.Equal(list, l.synced) {
		return // an unchanged skill is the same one in every list
	}
	l.synced = list
	now := catalogueText(list)
	if now == l.shown {
		return
	}
	first := l.shown == ""
	l.shown = now
	if !l.syncTools(len(list) > 0) && !first {
		l.mcp.SendNotificationToAllClients(mcp.MethodNotificationToolsListChanged, nil)
	}
	if !l.skills.SyncPrompts(list) && !first {
		l.mcp.SendNotificationToAllClients(mcp.MethodNotificationPromptsListChanged, nil)
	}
	if !first {
		l.mcp.SendNotificationToAllClients(mcp.MethodNotificationResourcesListChanged, nil)
	}
}

// catalogueText is all that tools and prompts are made of.
func catalogueText(list []*skillrepo.Skill) string {
	var b strings.Builder
	b.WriteString("skills:")
	for _, sk := range list {
		fmt.Fprintf(&b, "%q %q %q\n", sk.Name, sk.Description, sk.Paths)
	}
	return b.String()
}

// syncTools registers the listed tools, and those again that changed; it reports
// whether any did. What no client has seen yet cannot have changed for one.
func (l *lists) syncTools(known bool) bool {
	chosen := l.choices.without
	if known {
		chosen = l.choices.with
	}
	var before []entry
	if old := l.listed.Load(); old != nil {
		before = *old
	}
	now := make([]entry, len(chosen))
	var changed []mcpserver.ServerTool
	for i, c := range chosen {
		now[i] = l.entry(c)
		if old := slices.IndexFunc(before, now[i].is); old >= 0 && now[i].reads(before[old]) {
			now[i] = before[old]
		} else {
			changed = append(changed, now[i].registration())
		}
	}
	var gone []string
	for _, b := range before {
		if !slices.ContainsFunc(now, b.is) {
			gone = append(gone, b.tool.Name)
		}
	}
	l.listed.Store(&now)
	if len(changed) > 0 {
		l.mcp.AddTools(changed...)
	}
	if len(gone) > 0 {
		l.mcp.DeleteTools(gone...)
	}
	return len(changed)+len(gone) > 0
}

// unknownTool words the refusal of a name that is not listed: perhaps it is
// nearly one, perhaps it exists and was not selected.
func (l *lists) unknownTool(name string) string {
	chosen := l.chosen()
	names := make([]string, len(chosen))
	for i, c := range chosen {
		names[i] = c.tool.Name
	}
	text := fmt.Sprintf("Unknown tool %q.", name)
	if i := slices.IndexFunc(l.known, func(k selected) bool { return k.tool.Name == name }); i >= 0 {
		k := l.known[i]
		text += l.whyNotListed(k)
	} else if near := Nearest(name, names); near != "" {
		text += fmt.Sprintf(" Did you mean %q?", near)
	}
	return text + " Tools: " + strings.Join(names, ", ") + "."
}

func (l *lists) whyNotListed(k selected) string {
	if l.env.Settings.ReadOnly && !k.tool.Effect.AllowedReadOnly() {
		return " It is left out because this server is read-only (--read-only)."
	}
	return fmt.Sprintf(" It exists as %s but is not selected; start the server with --tools %s to have it.", k.name(), k.name())
}
