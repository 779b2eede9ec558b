package views

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
)

// maxDocument is how large a view is at most, in bytes.
const maxDocument = 24 << 10

// TestDocuments: each view is one small document that needs nothing else, and whose
// script cannot make anything of what it shows but text.
func TestDocuments(t *testing.T) {
	if len(Resources()) != 3 {
		t.Fatal(Resources())
	}
	for _, r := range Resources() {
		contents, ok := Read(r.URI)
		if !ok {
			t.Fatal(r.URI)
		}
		text := contents.(mcp.TextResourceContents).Text
		t.Logf("%s: %d bytes", r.URI, len(text))
		if len(text) > maxDocument {
			t.Errorf("%s has %d bytes, more than %d", r.URI, len(text), maxDocument)
		}
		for _, bad := range []string{`innerHTML`, `outerHTML`, `insertAdjacent`, `document\.write`, `\beval\b`, `new Function`, `srcdoc`, `createContextual`, `DOMParser`,
			`https?:`, `\bfetch\b`, `XMLHttp`, `WebSocket`, `sendBeacon`, `importScripts`, `import\(`, `localStorage`, `document\.cookie`, `tools/call`, `ui/message`, `ui/open-link`, `\{\{`,
			`<link`, `<img`, `<iframe`, ` on[a-z]+=`} {
			if m := regexp.MustCompile(bad).FindString(text); m != "" {
				t.Errorf("%s has %q", r.URI, m)
			}
		}
		if n := strings.Count(text, "<script"); n != 1 {
			t.Errorf("%s has %d scripts", r.URI, n)
		}
	}
	if _, ok := Read(Prefix + "other"); ok {
		t.Error("there is no such view")
	}
}

// TestDeclared: a view wants no domain and no permission.
func TestDeclared(t *testing.T) {
	contents, _ := Read(Prefix + "plan")
	raw, err := json.Marshal(contents)
	if err != nil {
		t.Fatal(err)
	}
	const want = `"_meta":{"ui":{"csp":{"baseUriDomains":[],"connectDomains":[],"frameDomains":[],"resourceDomains":[]},"prefersBorder":true}}`
	if !strings.Contains(string(raw), want) || !strings.Contains(string(raw), `"mimeType":"text/html;profile=mcp-app"`) {
		t.Errorf("%.400s", raw)
	}
}
