package skillsapi

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/server/internal/dispatch"
	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
	"github.com/perstack-ai/perstack-base/server/internal/views"
	"github.com/perstack-ai/perstack-base/skillrepo"
	"github.com/perstack-ai/perstack-base/tools"
)

// The resources that the extension stands on, and the files that skill_run saved.
const (
	skillTemplate    = "skill://{+path}"
	artifactScheme   = "artifact://"
	artifactTemplate = artifactScheme + "{+name}"
)

// isOurs reports whether a request is about a resource of a skill, an artifact or a view.
func isOurs(ctx context.Context, r *dispatch.Request) bool {
	p, _ := paramsOf(r, false)
	switch {
	case p.URI == nil:
		return false
	case tools.TakesViews(ctx) && strings.HasPrefix(*p.URI, views.Prefix):
		return true
	}
	return strings.HasPrefix(*p.URI, skillrepo.Scheme) || strings.HasPrefix(*p.URI, artifactScheme)
}

// AddTemplates lists the templates. Reading does not go by them, see resourcesRead.
func (a *API) AddTemplates() {
	notRouted := func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return nil, errors.New("no such resource")
	}
	a.MCP.AddResourceTemplates(
		mcpserver.ServerResourceTemplate{Handler: notRouted, Template: mcp.NewResourceTemplate(skillTemplate, "skill file",
			mcp.WithTemplateDescription("A file of a published skill."))},
		mcpserver.ServerResourceTemplate{Handler: notRouted, Template: mcp.NewResourceTemplate(artifactTemplate, "artifact",
			mcp.WithTemplateDescription("A file that skill_run saved, as NAME or NAME@VERSION."))},
	)
}

func unknownResource(uri string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: mcp.INVALID_PARAMS, Message: "There is no resource " + jsonrpc.Clip(uri, 200) + ".", Data: map[string]string{"uri": jsonrpc.Clip(uri, maxArgument)}}
}

func (a *API) directoryRead(ctx context.Context, r *dispatch.Request) (any, *jsonrpc.Error) {
	p, fault := paramsOf(r, true)
	if fault != nil {
		return nil, fault
	}
	target, fault := a.target(ctx, r)
	if fault != nil {
		return nil, fault
	}
	if target.File != nil {
		return nil, jsonrpc.InvalidParams(jsonrpc.Clip(*p.URI, 200) + " is a file, not a directory.")
	}
	chunk, next, fault := page(target.Children(), func(c skillrepo.Child) string { return c.Name }, p.Cursor, a.PageSize)
	if fault != nil {
		return nil, fault
	}
	return struct {
		Resources []skillrepo.Child `json:"resources"`
		Next      string            `json:"nextCursor,omitempty"`
		hints
	}{chunk, next, hints{ResultType: "complete"}}, nil
}

// A listing is one entry of resources/list, made when it is on the page.
type listing struct {
	uri  string
	make func() mcp.Resource
}

// listings are the SKILL.md of every published skill, the views for clients that show
// them, and the resources of other schemes, by URI.
func (a *API) listings(ctx context.Context) ([]listing, error) {
	published, err := a.published(ctx)
	if err != nil {
		return nil, err
	}
	var all []listing
	for _, one := range published {
		all = append(all, listing{one.URI(), func() mcp.Resource { return skillResource(one) }})
	}
	if !a.Foreign && !tools.TakesViews(ctx) {
		return all, nil
	}
	if tools.TakesViews(ctx) {
		for _, view := range views.Resources() {
			all = append(all, listing{view.URI, func() mcp.Resource { return view }})
		}
	}
	for uri, r := range a.MCP.ListResources() {
		all = append(all, listing{uri, func() mcp.Resource { return r.Resource }})
	}
	slices.SortFunc(all, func(x, y listing) int { return strings.Compare(x.uri, y.uri) })
	return all, nil
}

func skillResource(one *skillrepo.Published) mcp.Resource {
	resource := mcp.Resource{URI: one.URI(), Name: one.Name, Description: one.Description, MIMEType: skillrepo.MIMEType(one.SkillFile())}
	if f, err := one.Resource(one.SkillFile()); err == nil {
		resource.Size = &f.Size
	}
	return resource
}

func (a *API) resourcesList(ctx context.Context, r *dispatch.Request) (any, *jsonrpc.Error) {
	p, fault := paramsOf(r, false)
	if fault != nil {
		return nil, fault
	}
	all, err := a.listings(ctx)
	if err != nil {
		return nil, readFault(err)
	}
	chunk, next, fault := page(all, func(l listing) string { return l.uri }, p.Cursor, a.PageSize)
	if fault != nil {
		return nil, fault
	}
	result := mcp.ListResourcesResult{Resources: []mcp.Resource{}}
	result.NextCursor = mcp.Cursor(next)
	for _, l := range chunk {
		result.Resources = append(result.Resources, l.make())
	}
	if r.Modern {
		dispatch.Decorate(&result.Result, a.Identity)
		result.SetCacheHints(extensionTTL, mcp.CacheScopePrivate)
	}
	return result, nil
}

// resourcesRead serves the exact bytes of a skill's file or an artifact.
func (a *API) resourcesRead(ctx context.Context, r *dispatch.Request) (any, *jsonrpc.Error) {
	p, fault := paramsOf(r, true)
	if fault != nil {
		return nil, fault
	}
	contents, fault := a.contents(ctx, *p.URI)
	if fault != nil {
		return nil, fault
	}
	result := mcp.ReadResourceResult{Contents: []mcp.ResourceContents{contents}}
	if r.Modern {
		dispatch.Decorate(&result.Result, a.Identity)
		result.SetCacheHints(extensionTTL, mcp.CacheScopePrivate)
	}
	return result, nil
}

// contents is the resource of a URI as it is sent.
func (a *API) contents(ctx context.Context, uri string) (mcp.ResourceContents, *jsonrpc.Error) {
	if tools.TakesViews(ctx) {
		if view, ok := views.Read(uri); ok {
			return view, nil
		}
	}
	content, mime, fault := a.resource(ctx, uri)
	switch {
	case fault != nil:
		return nil, fault
	case !utf8.Valid(content):
		return mcp.BlobResourceContents{URI: uri, MIMEType: mime, Blob: base64.StdEncoding.EncodeToString(content)}, nil
	}
	return mcp.TextResourceContents{URI: uri, MIMEType: mime, Text: string(content)}, nil
}

// resource reads what a URI names.
func (a *API) resource(ctx context.Context, uri string) (content []byte, mime string, fault *jsonrpc.Error) {
	if strings.HasPrefix(uri, artifactScheme) {
		content, mime, err := a.Engine.Artifact(uri)
		if err != nil {
			return nil, "", unknownResource(uri)
		}
		return content, mime, nil
	}
	target, err := a.Repo.Lookup(ctx, uri)
	switch {
	case err != nil:
		return nil, "", unknownResource(uri)
	case target.File == nil:
		return nil, "", jsonrpc.InvalidParams(jsonrpc.Clip(uri, 200) + " is a directory; resources/directory/read lists it.")
	}
	content, err = target.ReadFile(*target.File, jsonrpc.MaxMessage)
	if err != nil {
		return nil, "", readFault(err)
	}
	return content, skillrepo.MIMEType(target.File.Path), nil
}

// publishedPaths are the files of published skills as skill:// URIs name them.
func (a *API) publishedPaths(ctx context.Context) (paths []string) {
	published, err := a.published(ctx)
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

// maxCompletions is what the protocol lets one answer carry.
const maxCompletions = 100

// CompleteResourceArgument implements [mcpserver.ResourceCompletionProvider].
func (a *API) CompleteResourceArgument(ctx context.Context, uri string, arg mcp.CompleteArgument, _ mcp.CompleteContext) (*mcp.Completion, error) {
	var names []string
	switch {
	case uri == skillTemplate && arg.Name == "path":
		names = a.publishedPaths(ctx)
	case uri == artifactTemplate && arg.Name == "name":
		names = a.Engine.Workdirs.Artifacts().Names()
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, arg.Value) })
	slices.Sort(names)
	shown := names[:min(len(names), maxCompletions)]
	return &mcp.Completion{Values: append([]string{}, shown...), Total: len(names), HasMore: len(shown) < len(names)}, nil
}
