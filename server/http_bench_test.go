package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/perstack-ai/perstack-base/server/internal/servertest"
	"github.com/perstack-ai/perstack-base/server/internal/web"
)

// BenchmarkHTTP measures a call that does nothing over Streamable HTTP, one
// after another, in both eras. The floor beside it is mcp-go's own handler with
// a tool that does nothing, without guard, sessions or any check of ours.
func BenchmarkHTTP(b *testing.B) {
	modern := `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	for _, era := range []struct{ name, meta string }{{"legacy", ""}, {"modern", modern}} {
		body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"attemptCompletion","arguments":{}%s}}`, era.meta)
		b.Run(era.name, func(b *testing.B) { benchPosts(b, serveOurs(b), body) })
		b.Run(era.name+"/floor=mcp-go", func(b *testing.B) { benchPosts(b, serveBare(b), body) })
	}
}

func serveOurs(b *testing.B) string {
	s, err := New(Config{Workspace: b.TempDir(), HTTP: &HTTP{Token: "0123456789abcdef"}})
	if err != nil {
		b.Fatal(err)
	}
	ln := listenLoopback(b)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = s.ServeListener(ctx, ln) }()
	b.Cleanup(func() { stop(); <-done; s.Close() })
	return "http://" + ln.Addr().String() + web.PathMCP
}

func serveBare(b *testing.B) string {
	m := mcpserver.NewMCPServer("bare", "1", mcpserver.WithToolCapabilities(true))
	m.AddTool(mcp.NewTool("attemptCompletion"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("{}"), nil
	})
	ln := listenLoopback(b)
	site := &http.Server{Handler: mcpserver.NewStreamableHTTPServer(m, mcpserver.WithStateful(true))}
	go func() { _ = site.Serve(ln) }()
	b.Cleanup(func() { site.Close() })
	return "http://" + ln.Addr().String() + web.PathMCP
}

func listenLoopback(b *testing.B) net.Listener {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	return ln
}

func benchPosts(b *testing.B, url string, body []byte) {
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer 0123456789abcdef"}}
	send := func(body []byte) *http.Response {
		req, _ := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
		req.Header = header
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != http.StatusOK {
			b.Fatal(resp, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return resp
	}
	if bytes.Contains(body, []byte("_meta")) {
		header.Set("Mcp-Protocol-Version", "2026-07-28")
		header.Set("Mcp-Method", "tools/call")
		header.Set("Mcp-Name", "attemptCompletion")
	} else {
		header.Set("Mcp-Session-Id", send([]byte(servertest.Greeting("1", "2025-11-25"))).Header.Get("Mcp-Session-Id"))
	}
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		send(body)
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
}
