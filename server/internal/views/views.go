// Package views has the documents that show people what calls do, in clients that know
// the MCP Apps extension: one HTML document for each [tools.View], without a request to
// anywhere. Start with [Read].
//
// They are written by hand: NAME.js and NAME.css are what is a view's own. page.html is
// the document around them, host.js the protocol between it and the client that shows
// it, base.css the looks.
package views

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"maps"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/perstack-ai/perstack-base/server/internal/dispatch"
	"github.com/perstack-ai/perstack-base/tools"
)

// Prefix begins the URI of every view.
const Prefix = "ui://perstack-base/"

//go:embed page.html *.css *.js
var sources embed.FS

// all are the views, by URI.
var all = []struct {
	view               tools.View
	title, description string
}{
	{tools.ViewDiff, "Changes", "What a call changes in files."},
	{tools.ViewPlan, "Plan", "The list of what is to be done, and how far it is."},
	{tools.ViewTerminal, "Command", "A command, what it printed and how it ended."},
}

// uri names the document of a view.
func uri(v tools.View) string { return Prefix + string(v) }

// Resources lists the views, by URI.
func Resources() []mcp.Resource {
	list := make([]mcp.Resource, len(all))
	for i, one := range all {
		list[i] = mcp.Resource{URI: uri(one.view), Name: string(one.view), Title: one.title, Description: one.description, MIMEType: dispatch.ViewType}
	}
	return list
}

// Named is what a listing says of a tool whose calls the view shows, besides meta.
func Named(meta *mcp.Meta, v tools.View) *mcp.Meta {
	fields := map[string]any{"ui": map[string]any{"resourceUri": uri(v)}}
	if meta != nil {
		maps.Copy(fields, meta.AdditionalFields)
	}
	return mcp.NewMetaFromMap(fields)
}

// Read returns the document that a URI names.
func Read(name string) (mcp.ResourceContents, bool) {
	document := documents()[name]
	return mcp.TextResourceContents{URI: name, MIMEType: dispatch.ViewType, Text: document, Meta: declared}, document != ""
}

// declared is what a view wants of the client: no domain, no permission, no frame.
var declared = map[string]any{"ui": map[string]any{
	"csp": map[string]any{
		"connectDomains": []string{}, "resourceDomains": []string{}, "frameDomains": []string{}, "baseUriDomains": []string{},
	},
	"prefersBorder": true,
}}

// documents are the views as they are served, made at first use.
var documents = sync.OnceValue(func() map[string]string {
	made := map[string]string{}
	for _, one := range all {
		made[uri(one.view)] = join(string(one.view), one.title)
	}
	return made
})

// join puts a document together. Its policy lets only this very script run, so that
// nothing that it shows could, and lets nothing be loaded, whatever the client says.
func join(view, title string) string {
	script := "\"use strict\";\n{\n" + source("host.js") + source(view+".js") + "}\n"
	sum := sha256.Sum256([]byte(script))
	policy := "default-src 'none'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; style-src 'unsafe-inline'; " +
		"img-src data:; font-src data:; base-uri 'none'; form-action 'none'"
	style := source("base.css") + source(view+".css")
	return strings.NewReplacer("{{title}}", title, "{{policy}}", policy, "{{style}}", style, "{{script}}", script).Replace(source("page.html"))
}

// source reads one of the files without the comments and blanks that only their readers need.
func source(name string) string {
	text, err := sources.ReadFile(name)
	if err != nil {
		panic(err) // it is embedded
	}
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}
