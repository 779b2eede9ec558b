package server

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/skillrepo"
)

// The MCP Skills extension, and the resources that it stands on. Nothing here
// renders, runs or activates a skill.
const (
	skillsExtension  = "io.modelcontextprotocol/skills"
	skillTemplate    = "skill://{+path}"
	artifactScheme   = "artifact://"
	artifactTemplate = artifactScheme + "{+name}"

	skillPage     = 50     // skills in one page of skills/list
	extensionTTL  = 10_000 // milliseconds that an answer may be kept
	maxArgumentLn = 8192   // bytes of a URI or cursor
)

// skillMethods are the methods answered here, as they look at the disk anew.
var skillMethods = map[string]func(*Server, context.Context, *request) (any, *rpcError){
	"skills/list":              (*Server).skillsList,
	"skills/get":               (*Server).skillsGet,
	"resources/directory/read": (*Server).directoryRead,
	"resources/list":           (*Server).resourcesList,
	"resources/read":           (*Server).resourcesRead,
}

// fixture reports whether a request is about the resources that a build with the
// tag conformance adds; no other has any but those of skills.
func (s *Server) fixture(r *request) bool {
	p, _ := paramsOf(r, false)
	ours := p.URI != nil && (strings.HasPrefix(*p.URI, skillrepo.Scheme) || strings.HasPrefix(*p.URI, artifactScheme))
	return extras.register != nil && strings.HasPrefix(r.method, "resources/") && !ours && r.method != "resources/directory/read"
}

// addTemplates lists the templates. Reading does not go by them, see resourcesRead.
func (s *Server) addTemplates() {
	unread := func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return nil, errors.New("no such resource")
	}
	s.mcp.AddResourceTemplates(
		mcpserver.ServerResourceTemplate{Handler: unread, Template: mcp.NewResourceTemplate(skillTemplate, "skill file",
			mcp.WithTemplateDescription("A file of a published skill."))},
		mcpserver.ServerResourceTemplate{Handler: unread, Template: mcp.NewResourceTemplate(artifactTemplate, "artifact",
			mcp.WithTemplateDescription("A file that skill_run saved, as NAME or NAME@VERSION."))},
	)
}

// extensionParams are what the methods here take.
type extensionParams struct {
	URI    *string `json:"uri"`
	Cursor *string `json:"cursor"`
}

func paramsOf(r *request, wantURI bool) (p extensionParams, fault *rpcError) {
	if r.params != nil && json.Unmarshal(r.params, &p) != nil {
		return p, invalidParams("the params of " + r.method + " do not have the form that the protocol gives them")
	}
	if wantURI && (p.URI == nil || *p.URI == "" || len(*p.URI) > maxArgumentLn) {
		return p, invalidParams("params.uri is missing: it names the resource")
	}
	return p, nil
}

// page cuts one page out of items, which are sorted by key; the cursor is the key
// of the last item of the page before.
func page[T any](items []T, key func(T) string, cursor *string, size int) (list []T, next string, fault *rpcError) {
	from := 0
	if cursor != nil {
		after, err := base64.RawURLEncoding.DecodeString(*cursor)
		if err != nil || len(after) == 0 || !strings.HasPrefix(string(after), ">") {
			return nil, "", invalidParams("the cursor is not one that this server gave")
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

// publishedPage is the page of published skills, by URI, that a request asks for.
func (s *Server) publishedPage(ctx context.Context, r *request, size int) (chunk []*skillrepo.Published, next string, fault *rpcError) {
	p, fault := paramsOf(r, false)
	if fault != nil {
		return nil, "", fault
	}
	published, err := s.published(ctx)
	if err != nil {
		return nil, "", vanished(err)
	}
	return page(published, (*skillrepo.Published).URI, p.Cursor, size)
}

func (s *Server) skillsList(ctx context.Context, r *request) (any, *rpcError) {
	chunk, next, fault := s.publishedPage(ctx, r, skillPage)
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
		return nil, vanished(ctx.Err())
	}
	return struct {
		Skills []*skillrepo.Entry `json:"skills"`
		Next   string             `json:"nextCursor,omitempty"`
		hints
	}{entries, next, kept}, nil
}

// vanished words what was there a moment ago.
func vanished(err error) *rpcError { return invalidParams("skills cannot be read: " + err.Error()) }

func (s *Server) skillsGet(ctx context.Context, r *request) (any, *rpcError) {
	target, fault := s.target(ctx, r)
	if fault != nil {
		return nil, fault
	}
	if !target.IsSkill() {
		return nil, invalidParams("params.uri is not the SKILL.md of a skill")
	}
	entry, err := target.Entry(ctx)
	if err != nil {
		return nil, vanished(err)
	}
	return struct {
		Skill *skillrepo.Entry `json:"skill"`
		hints
	}{entry, kept}, nil
}

// target finds what params.uri names.
func (s *Server) target(ctx context.Context, r *request) (*skillrepo.Target, *rpcError) {
	p, fault := paramsOf(r, true)
	if fault != nil {
		return nil, fault
	}
	target, err := s.repo.Lookup(ctx, *p.URI)
	if err != nil {
		return nil, unknownResource(*p.URI)
	}
	return target, nil
}

func unknownResource(uri string) *rpcError {
	return &rpcError{Code: mcp.INVALID_PARAMS, Message: "There is no resource " + clip(uri, 200) + ".", Data: map[string]string{"uri": clip(uri, maxArgumentLn)}}
}

func (s *Server) directoryRead(ctx context.Context, r *request) (any, *rpcError) {
	p, fault := paramsOf(r, true)
	if fault != nil {
		return nil, fault
	}
	target, fault := s.target(ctx, r)
	if fault != nil {
		return nil, fault
	}
	if target.File != nil {
		return nil, invalidParams(clip(*p.URI, 200) + " is a file, not a directory.")
	}
	chunk, next, fault := page(target.Children(), func(c skillrepo.Child) string { return c.Name }, p.Cursor, pageSize)
	if fault != nil {
		return nil, fault
	}
	return struct {
		Resources []skillrepo.Child `json:"resources"`
		Next      string            `json:"nextCursor,omitempty"`
		hints
	}{chunk, next, hints{ResultType: "complete"}}, nil
}

// resourcesList has the SKILL.md of every published skill.
func (s *Server) resourcesList(ctx context.Context, r *request) (any, *rpcError) {
	chunk, next, fault := s.publishedPage(ctx, r, pageSize)
	if fault != nil {
		return nil, fault
	}
	result := mcp.ListResourcesResult{Resources: []mcp.Resource{}}
	result.NextCursor = mcp.Cursor(next)
	for _, one := range chunk {
		resource := mcp.Resource{URI: one.URI(), Name: one.Name, Description: one.Description, MIMEType: skillrepo.MIMEType(one.SkillFile())}
		if f, err := one.Resource(one.SkillFile()); err == nil {
			resource.Size = &f.Size
		}
		result.Resources = append(result.Resources, resource)
	}
	if r.modern {
		s.decorate(&result.Result)
		result.SetCacheHints(extensionTTL, mcp.CacheScopePrivate)
	}
	return result, nil
}

// decorate adds what every result of the modern era has.
func (s *Server) decorate(r *mcp.Result) {
	r.SetResultType(mcp.ResultTypeComplete)
	r.EnsureResultMeta().SetServerInfo(mcp.Implementation{Name: Name, Title: Title, Version: s.version, WebsiteURL: Website})
}

// resourcesRead serves the exact bytes of a skill's file or an artifact.
func (s *Server) resourcesRead(ctx context.Context, r *request) (any, *rpcError) {
	p, fault := paramsOf(r, true)
	if fault != nil {
		return nil, fault
	}
	content, mime, fault := s.resource(ctx, *p.URI)
	if fault != nil {
		return nil, fault
	}
	var contents mcp.ResourceContents = mcp.TextResourceContents{URI: *p.URI, MIMEType: mime, Text: string(content)}
	if !utf8.Valid(content) {
		contents = mcp.BlobResourceContents{URI: *p.URI, MIMEType: mime, Blob: base64.StdEncoding.EncodeToString(content)}
	}
	result := mcp.ReadResourceResult{Contents: []mcp.ResourceContents{contents}}
	if r.modern {
		s.decorate(&result.Result)
		result.SetCacheHints(extensionTTL, mcp.CacheScopePrivate)
	}
	return result, nil
}

// resource reads what a URI names.
func (s *Server) resource(ctx context.Context, uri string) (content []byte, mime string, fault *rpcError) {
	if strings.HasPrefix(uri, artifactScheme) {
		content, mime, err := s.env.Skills.Artifact(uri)
		if err != nil {
			return nil, "", unknownResource(uri)
		}
		return content, mime, nil
	}
	target, err := s.repo.Lookup(ctx, uri)
	switch {
	case err != nil:
		return nil, "", unknownResource(uri)
	case target.File == nil:
		return nil, "", invalidParams(clip(uri, 200) + " is a directory; resources/directory/read lists it.")
	}
	content, err = target.ReadFile(*target.File, maxMessage)
	if err != nil {
		return nil, "", vanished(err)
	}
	return content, skillrepo.MIMEType(target.File.Path), nil
}

// publishedPaths are the files of published skills as skill:// URIs name them.
func (s *Server) publishedPaths(ctx context.Context) (paths []string) {
	published, err := s.published(ctx)
	if err != nil {
		return nil
	}
	for _, p := range published {
		list, err := p.Files(ctx)
		if err != nil {
			continue
		}
		for _, f := range list.Files {
			paths = append(paths, strings.TrimPrefix(p.FileURI(f.Path), skillrepo.Scheme))
		}
	}
	return slices.Compact(paths)
}
