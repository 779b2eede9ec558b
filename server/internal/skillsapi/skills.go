package skillsapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/server/internal/dispatch"
	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
	"github.com/perstack-ai/perstack-base/skillrepo"
	"github.com/perstack-ai/perstack-base/tools"
)

// Extension is the name of the MCP Skills extension.
const Extension = "io.modelcontextprotocol/skills"

const (
	skillPage    = 50     // skills in one page of skills/list
	extensionTTL = 10_000 // milliseconds that an answer may be kept
	maxArgument  = 8192   // bytes of a URI or cursor
)

// An API answers what clients ask of skills.
type API struct {
	Repo     *skillrepo.Repo
	Engine   *tools.Skills
	MCP      *mcpserver.MCPServer // lists templates and prompts
	Identity mcp.Implementation   // of the server
	PageSize int                  // resources in one page
	Foreign  bool                 // MCP has resources of other schemes

	recent  snapshot
	prompts []string // skills that have a prompt; guarded by who calls SyncPrompts
}

// methods are those answered here: mcp-go would not look at the disk again.
var methods = map[string]func(*API, context.Context, *dispatch.Request) (any, *jsonrpc.Error){
	"skills/list":              (*API).skillsList,
	"skills/get":               (*API).skillsGet,
	"resources/directory/read": (*API).directoryRead,
	"resources/list":           (*API).resourcesList,
	"resources/read":           (*API).resourcesRead,
}

// Answer answers a request about skills or resources; handled false says that it
// is about something else.
func (a *API) Answer(ctx context.Context, r *dispatch.Request) (result any, fault *jsonrpc.Error, handled bool) {
	answer := methods[r.Method]
	if answer == nil || a.Foreign && r.Method == "resources/read" && !isOurs(ctx, r) {
		return nil, nil, false
	}
	result, fault = answer(a, ctx, r)
	return result, fault, true
}

// A snapshot is the published skills as they were a moment ago, for the pages of one list.
type snapshot struct {
	mu   sync.Mutex
	list []*skillrepo.Published
	made time.Time
}

// maxAge is how old a snapshot may be to be shown.
const maxAge = 250 * time.Millisecond

// published are the skills that a strict host accepts, by URI.
func (a *API) published(ctx context.Context) ([]*skillrepo.Published, error) {
	m := &a.recent
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); now.Sub(m.made) > maxAge {
		list, err := a.Repo.Published(ctx)
		if err != nil {
			return nil, err
		}
		m.list, m.made = list, now
	}
	return m.list, nil
}

// extensionParams are what the methods here take.
type extensionParams struct {
	URI    *string `json:"uri"`
	Cursor *string `json:"cursor"`
}

func paramsOf(r *dispatch.Request, wantURI bool) (p extensionParams, fault *jsonrpc.Error) {
	if r.Params != nil && json.Unmarshal(r.Params, &p) != nil {
		return p, jsonrpc.InvalidParams("the params of " + r.Method + " do not have the form that the protocol gives them")
	}
	if wantURI && (p.URI == nil || *p.URI == "" || len(*p.URI) > maxArgument) {
		return p, jsonrpc.InvalidParams("params.uri is missing: it names the resource")
	}
	return p, nil
}

// page cuts one page out of items, which are sorted by key; the cursor is the key
// of the last item of the page before.
func page[T any](items []T, key func(T) string, cursor *string, size int) (list []T, next string, fault *jsonrpc.Error) {
	from := 0
	if cursor != nil {
		after, err := base64.RawURLEncoding.DecodeString(*cursor)
		if err != nil || len(after) == 0 || !strings.HasPrefix(string(after), ">") {
			return nil, "", jsonrpc.InvalidParams("the cursor is not one that this server gave")
		}
		i, found := slices.BinarySearchFunc(items, string(after[1:]), func(item T, k string) int { return strings.Compare(key(item), k) })
		if from = i; found {
			from++
		}
	}
	list = items[from:]
	if len(list) > size {
		list = list[:size]
		next = base64.RawURLEncoding.EncodeToString([]byte(">" + key(list[size-1])))
	}
	return append([]T{}, list...), next, nil
}

// hints are the members that every answer of the extension has, in every era.
type hints struct {
	ResultType string `json:"resultType"`
	TTLMs      int    `json:"ttlMs,omitempty"`
	CacheScope string `json:"cacheScope,omitempty"`
}

var kept = hints{"complete", extensionTTL, "private"}

func (a *API) skillsList(ctx context.Context, r *dispatch.Request) (any, *jsonrpc.Error) {
	p, fault := paramsOf(r, false)
	if fault != nil {
		return nil, fault
	}
	published, err := a.published(ctx)
	if err != nil {
		return nil, readFault(err)
	}
	chunk, next, fault := page(published, (*skillrepo.Published).URI, p.Cursor, skillPage)
	if fault != nil {
		return nil, fault
	}
	entries := []*skillrepo.Entry{}
	for _, one := range chunk {
		if entry, err := one.Entry(ctx); err == nil {
			entries = append(entries, entry)
		}
	}
	if ctx.Err() != nil {
		return nil, readFault(ctx.Err())
	}
	return struct {
		Skills []*skillrepo.Entry `json:"skills"`
		Next   string             `json:"nextCursor,omitempty"`
		hints
	}{entries, next, kept}, nil
}

// readFault words what was there a moment ago.
func readFault(err error) *jsonrpc.Error {
	return jsonrpc.InvalidParams("skills cannot be read: " + err.Error())
}

func (a *API) skillsGet(ctx context.Context, r *dispatch.Request) (any, *jsonrpc.Error) {
	target, fault := a.target(ctx, r)
	if fault != nil {
		return nil, fault
	}
	if !target.IsSkill() {
		return nil, jsonrpc.InvalidParams("params.uri is not the SKILL.md of a skill")
	}
	entry, err := target.Entry(ctx)
	if err != nil {
		return nil, readFault(err)
	}
	return struct {
		Skill *skillrepo.Entry `json:"skill"`
		hints
	}{entry, kept}, nil
}

// target finds what params.uri names.
func (a *API) target(ctx context.Context, r *dispatch.Request) (*skillrepo.Target, *jsonrpc.Error) {
	p, fault := paramsOf(r, true)
	if fault != nil {
		return nil, fault
	}
	target, err := a.Repo.Lookup(ctx, *p.URI)
	if err != nil {
		return nil, unknownResource(*p.URI)
	}
	return target, nil
}
