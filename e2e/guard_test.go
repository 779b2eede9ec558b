package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

const (
	secret = "correct-horse-battery-staple"
	ping   = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
)

// tokenFile holds the secret, with a line end as editors leave it.
func tokenFile(t testing.TB) string {
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A knock is one raw HTTP request.
type knock struct {
	method, path, body string
	header             map[string]string // Host too; a name with "" is left out
}

func (k knock) at(t testing.TB, base string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(k.method, base+k.path, strings.NewReader(k.body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Authorization": "Bearer " + secret,
		"MCP-Protocol-Version": modernVersion, "Mcp-Method": "tools/list"} {
		req.Header.Set(name, value)
	}
	for name, value := range k.header {
		switch {
		case name == "Host":
			req.Host = value
		case value == "":
			req.Header.Del(name)
		default:
			req.Header.Set(name, value)
		}
	}
	resp, err := browserless.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp, string(body)
}

type headers = map[string]string

// TestGuard knocks with every row of the guard's table, in both directions: what
// is refused, and that the same request without the one fault is served.
func TestGuard(t *testing.T) {
	s := startSite(t, workspace(t), "http", "--auth-token-file", tokenFile(t), "--allow-host", "tools.example",
		"--allow-host", "port.example:99", "--allow-origin", "https://app.example")
	big := strings.Repeat(" ", 9<<20)
	for _, c := range []struct {
		name   string
		knock  knock
		status int
		says   string
		header headers // of the answer; "" = absent
	}{
		{"it is fine otherwise", knock{"POST", "/mcp", ping, nil}, 200, `"tools"`, headers{"X-Content-Type-Options": "nosniff", "X-Accel-Buffering": "no", "Access-Control-Allow-Origin": ""}},
		{"health needs nothing", knock{"GET", "/healthz", "", headers{"Authorization": "", "Host": "evil.example", "Origin": "https://evil.example"}}, 200, "ok", nil},
		{"another path", knock{"POST", "/", ping, nil}, 404, "--transport", nil},
		{"path of the other transport", knock{"GET", "/sse", "", nil}, 404, "--transport", nil},
		{"another host", knock{"POST", "/mcp", ping, headers{"Host": "evil.example"}}, 403, "--allow-host", nil},
		{"another host that looks like ours", knock{"POST", "/mcp", ping, headers{"Host": "localhost.evil.example"}}, 403, "--allow-host", nil},
		{"host localhost, any port", knock{"POST", "/mcp", ping, headers{"Host": "LOCALHOST:1"}}, 200, "", nil},
		{"host in the loopback net", knock{"POST", "/mcp", ping, headers{"Host": "127.9.9.9"}}, 200, "", nil},
		{"host ::1", knock{"POST", "/mcp", ping, headers{"Host": "[::1]:5"}}, 200, "", nil},
		{"permitted host, any port", knock{"POST", "/mcp", ping, headers{"Host": "tools.example:5"}}, 200, "", nil},
		{"permitted host and port", knock{"POST", "/mcp", ping, headers{"Host": "port.example:99"}}, 200, "", nil},
		{"permitted host, another port", knock{"POST", "/mcp", ping, headers{"Host": "port.example:98"}}, 403, "--allow-host", nil},
		{"page of another origin", knock{"POST", "/mcp", ping, headers{"Origin": "https://evil.example"}}, 403, "--allow-origin", headers{"Access-Control-Allow-Origin": ""}},
		{"page without origin", knock{"POST", "/mcp", ping, headers{"Origin": "null"}}, 403, "--allow-origin", nil},
		{"page of a local file", knock{"POST", "/mcp", ping, headers{"Origin": "file://"}}, 403, "--allow-origin", nil},
		{"page from loopback", knock{"POST", "/mcp", ping, headers{"Origin": "http://localhost:3000"}}, 200, "", headers{"Access-Control-Allow-Origin": "http://localhost:3000", "Vary": "Origin"}},
		{"page named like loopback", knock{"POST", "/mcp", ping, headers{"Origin": "http://localhost.evil.example"}}, 403, "--allow-origin", nil},
		{"permitted page", knock{"POST", "/mcp", ping, headers{"Origin": "https://app.example"}}, 200, "", headers{"Access-Control-Allow-Origin": "https://app.example"}},
		{"permitted page, another port", knock{"POST", "/mcp", ping, headers{"Origin": "https://app.example:1"}}, 403, "--allow-origin", nil},
		{"preflight needs no token", knock{"OPTIONS", "/mcp", "", headers{"Authorization": "", "Origin": "https://app.example"}}, 204, "", headers{"Access-Control-Max-Age": "600", "Access-Control-Expose-Headers": "Mcp-Session-Id, WWW-Authenticate"}},
		{"preflight of a stranger", knock{"OPTIONS", "/mcp", "", headers{"Origin": "https://evil.example"}}, 403, "", headers{"Access-Control-Allow-Origin": "", "Access-Control-Allow-Methods": ""}},
		{"no token", knock{"POST", "/mcp", ping, headers{"Authorization": ""}}, 401, "--auth-token-file", headers{"WWW-Authenticate": `Bearer realm="perstack-base"`}},
		{"wrong token", knock{"POST", "/mcp", ping, headers{"Authorization": "Bearer " + secret + "r"}}, 401, "", headers{"WWW-Authenticate": `Bearer realm="perstack-base", error="invalid_token"`}},
		{"token in the query", knock{"POST", "/mcp?token=" + secret + "&access_token=" + secret, ping, headers{"Authorization": ""}}, 401, "", nil},
		{"scheme in any case", knock{"POST", "/mcp", ping, headers{"Authorization": "bEARER " + secret}}, 200, "", nil},
		{"another scheme", knock{"POST", "/mcp", ping, headers{"Authorization": "Basic " + secret}}, 401, "", nil},
		{"token in the header of its own", knock{"POST", "/mcp", ping, headers{"Authorization": "", "X-Perstack-Base-Token": secret}}, 200, "", nil},
		{"beside a credential for a proxy", knock{"POST", "/mcp", ping, headers{"Authorization": "Bearer of-the-proxy", "X-Perstack-Base-Token": secret}}, 200, "", nil},
		{"wrong token in the header of its own", knock{"POST", "/mcp", ping, headers{"Authorization": "", "X-Perstack-Base-Token": secret + "r"}}, 401, "", headers{"WWW-Authenticate": `Bearer realm="perstack-base", error="invalid_token"`}},
		{"text/plain, as forms can send it", knock{"POST", "/mcp", ping, headers{"Content-Type": "text/plain"}}, 415, "application/json", nil},
		{"no content type", knock{"POST", "/mcp", ping, headers{"Content-Type": ""}}, 415, "", nil},
		{"a charset is fine", knock{"POST", "/mcp", ping, headers{"Content-Type": "application/json; charset=utf-8"}}, 200, "", nil},
		{"too much", knock{"POST", "/mcp", big, nil}, 413, "message of 9437184 bytes exceeds the limit of 8388608 bytes; send the content in smaller parts", nil},
		{"no JSON", knock{"POST", "/mcp", `{`, nil}, 400, "-32700", nil},
		{"a batch", knock{"POST", "/mcp", `[` + ping + `]`, nil}, 400, "-32600", nil},
		{"an id too large", knock{"POST", "/mcp", strings.Replace(ping, `"id":1`, `"id":9007199254740992`, 1), nil}, 400, "-32600", nil},
		{"the largest id", knock{"POST", "/mcp", strings.Replace(ping, `"id":1`, `"id":9007199254740991`, 1), nil}, 200, `"id":9007199254740991,`, nil},
		{"a fraction as id", knock{"POST", "/mcp", strings.Replace(ping, `"id":1`, `"id":1.5`, 1), nil}, 400, "-32600", nil},
		{"another method", knock{"PUT", "/mcp", "", nil}, 405, "", headers{"Allow": "POST, OPTIONS"}},
		{"a stream without a session", knock{"GET", "/mcp", "", headers{"MCP-Protocol-Version": ""}}, 400, "Mcp-Session-Id", nil},
		{"a stream of a forged session", knock{"GET", "/mcp", "", headers{"MCP-Protocol-Version": "", "Mcp-Session-Id": strings.Repeat("0", 32)}}, 404, "initialize", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, body := c.knock.at(t, s.base)
			if resp.StatusCode != c.status || !strings.Contains(body, c.says) {
				t.Errorf("status %d, %s; want %d, %s", resp.StatusCode, body, c.status, c.says)
			}
			for name, want := range c.header {
				if got := resp.Header.Get(name); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
			var object struct {
				JSONRPC string
				Error   *struct{ Code int }
			}
			if c.status >= 400 && (json.Unmarshal([]byte(body), &object) != nil || object.JSONRPC != "2.0" || object.Error == nil) {
				t.Errorf("a refusal is a JSON-RPC error, not %s", body)
			}
		})
	}
	if strings.Contains(s.stderr.String(), secret) {
		t.Error("the token is in the log")
	}
}

// TestStartRefusals: what is not safe is not begun.
func TestStartRefusals(t *testing.T) {
	short := filepath.Join(t.TempDir(), "short")
	empty := filepath.Join(t.TempDir(), "empty")
	file := filepath.Join(t.TempDir(), "file")
	for path, text := range map[string]string{short: "0123456789\n", empty: "\n", file: "precious"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		flags []string
		says  string
	}{
		{[]string{"--transport", "http", "--listen", "0.0.0.0:0"}, "refusing to listen on 0.0.0.0:0 without a token: anyone who can reach it could run commands; "},
		{[]string{"--transport", "sse", "--listen", "[::]:0"}, "refusing to listen on [::]:0 without a token"},
		{[]string{"--transport", "http", "--allow-origin", "*"}, "--allow-origin * needs a token"},
		{[]string{"--transport", "http", "--auth-token-file", short}, "shorter than 16 characters"},
		{[]string{"--transport", "http", "--auth-token-file", empty}, "empty"},
		{[]string{"--transport", "http", "--auth-token-file", empty + "x"}, "--auth-token-file"},
		{[]string{"--transport", "http", "--listen", "unix:" + file}, "is not a socket"},
		{[]string{"--transport", "http", "--listen", "nonsense"}, "must be HOST:PORT"},
		{[]string{"--transport", "http", "--tls-cert", file}, "go together"},
		{[]string{"--transport", "smoke"}, "must be stdio, http or sse"},
	} {
		t.Run(strings.Join(c.flags, " "), func(t *testing.T) {
			cmd := exec.Command(binary, append([]string{"serve"}, c.flags...)...)
			cmd.Dir = workspace(t)
			out, err := cmd.CombinedOutput()
			if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), c.says) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	if got, _ := os.ReadFile(file); string(got) != "precious" {
		t.Error("a file in the way was harmed")
	}
}

// TestTokenFromEnvironment: it is taken, and no command sees it.
func TestTokenFromEnvironment(t *testing.T) {
	t.Setenv("PERSTACK_BASE_AUTH_TOKEN", secret)
	s := startSite(t, workspace(t), "http")
	if resp, _ := (knock{"POST", "/mcp", ping, headers{"Authorization": ""}}).at(t, s.base); resp.StatusCode != 401 {
		t.Errorf("without the token: %s", resp.Status)
	}
	v := visit(s, true)
	v.token = secret
	result, err := v.call("exec", run("env"))
	if err != nil || result.IsError || strings.Contains(text(t, result), secret) {
		t.Errorf("the environment of a command: %v %v", result, err)
	}
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(workspace(t), "s")
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	stale.Close()
	s := startSiteOf(t, binary, workspace(t), "serve", "--transport", "http", "--listen", "unix:"+path)
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the socket: %v %v", info, err)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", path) }}}
	req, _ := http.NewRequest(http.MethodPost, "http://any.example/mcp", strings.NewReader(ping))
	req.Header = http.Header{"Content-Type": {"application/json"}, "Mcp-Protocol-Version": {modernVersion}, "Mcp-Method": {"tools/list"}}
	resp, err := client.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
	second := exec.Command(binary, "serve", "--transport", "http", "--listen", "unix:"+path)
	if out, _ := second.CombinedOutput(); second.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "another server answers") {
		t.Errorf("a second server: %s", out)
	}
	if out, err := exec.Command(binary, "healthcheck", "--transport", "http", "--listen", "unix:"+path).CombinedOutput(); err != nil {
		t.Errorf("healthcheck: %v %s", err, out)
	}
	s.cmd.Process.Signal(syscall.SIGTERM)
	if code := s.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("the socket is still there")
	}
}

// TestSocketDirectory: a directory that is missing is made for this user alone, or named.
func TestSocketDirectory(t *testing.T) {
	ws, dir := workspace(t), t.TempDir()
	s := startSite(t, ws, "http", "--listen", "unix:"+filepath.Join(dir, "run/me/mcp"))
	if info, err := os.Stat(filepath.Join(dir, "run/me")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory of the socket: %v (%v)", info, err)
	}
	s.kill()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, stderr, code := cli(t, ws, nil, "--transport", "http", "--listen", "unix:"+filepath.Join(dir, "file/mcp"))
	if want := "the directory " + filepath.Join(dir, "file") + " does not exist and cannot be made"; code != 2 || !strings.Contains(stderr, want) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestTLSAndHealthcheck(t *testing.T) {
	cert, key := certificate(t)
	s := startSite(t, workspace(t), "http", "--tls-cert", cert, "--tls-key", key)
	if !strings.HasPrefix(s.url, "https://") {
		t.Fatal(s.url)
	}
	pem, _ := os.ReadFile(cert)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	resp, err := client.Get(s.base + "/healthz")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
	listen := strings.TrimPrefix(s.base, "https://")
	if out, err := exec.Command(binary, "healthcheck", "--transport", "http", "--listen", listen, "--tls-cert", cert).CombinedOutput(); err != nil {
		t.Errorf("healthcheck: %v %s", err, out)
	}
	s.kill()
	if err := exec.Command(binary, "healthcheck", "--transport", "http", "--listen", listen).Run(); err == nil {
		t.Error("a dead server is healthy")
	}
}

// certificate makes a key pair for 127.0.0.1.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, block := range map[string]*pem.Block{"cert": {Type: "CERTIFICATE", Bytes: der}, "key": {Type: "PRIVATE KEY", Bytes: raw}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "cert"), filepath.Join(dir, "key")
}

// TestDriveBy does what a page of another origin can do in a browser: send
// requests that need no leave, with its Origin, and read event streams that are
// open to it. It must not run a tool; mcp-go's own handler of HTTP+SSE lets it.
func TestDriveBy(t *testing.T) {
	for _, c := range []struct {
		name string
		base string
		hits bool
	}{
		{"sse", startSite(t, workspace(t), "sse").base, false},
		{"mcp-go's handler", naive(t), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := driveBy(t, c.base); got != c.hits {
				t.Errorf("the page could run a tool: %v", got)
			}
		})
	}
	t.Run("http", func(t *testing.T) {
		s := startSite(t, workspace(t), "http")
		call := strings.Replace(strings.Replace(ping, "tools/list", "tools/call", 1), `"_meta"`, `"name":"todo","_meta"`, 1)
		for _, kind := range []string{"text/plain", "application/json"} {
			attack := headers{"Content-Type": kind, "Origin": "https://evil.example", "Mcp-Method": "tools/call", "Mcp-Name": "todo"}
			if resp, body := (knock{"POST", "/mcp", call, attack}).at(t, s.base); resp.StatusCode != 403 {
				t.Errorf("as %s: %s %s", kind, resp.Status, body)
			}
			delete(attack, "Origin")
			resp, body := (knock{"POST", "/mcp", call, attack}).at(t, s.base)
			if served := resp.StatusCode == 200; served != (kind == "application/json") {
				t.Errorf("without an origin, as %s: %s %s", kind, resp.Status, body)
			}
		}
	})
}

// driveBy tries to open a stream and to run a tool over it, as a page can.
func driveBy(t *testing.T, base string) bool {
	req, _ := http.NewRequest(http.MethodGet, base+"/sse", nil)
	req.Header.Set("Origin", "https://evil.example")
	stream, err := browserless.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	if stream.StatusCode != http.StatusOK || stream.Header.Get("Access-Control-Allow-Origin") == "" {
		return false // a browser shows the page nothing of it
	}
	hit := make(chan bool, 1)
	go readEvents(stream.Body, func(name, data string) {
		if name == "endpoint" {
			if strings.HasPrefix(data, "/") {
				data = base + data
			}
			for i, m := range []string{
				`"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"evil","version":"1"}}`,
				`"method":"tools/call","params":{"name":"run","arguments":{}}`,
			} {
				post, _ := http.NewRequest(http.MethodPost, data, strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, i, m)))
				post.Header = http.Header{"Origin": {"https://evil.example"}, "Content-Type": {"text/plain"}}
				if resp, err := browserless.Do(post); err == nil {
					resp.Body.Close()
				}
			}
		}
		if strings.Contains(data, `"id":1,`) || strings.Contains(data, `"id":1}`) {
			hit <- strings.Contains(data, "it ran")
		}
	})
	select {
	case ran := <-hit:
		return ran
	case <-time.After(hangGuard):
		t.Fatal("no answer")
	}
	return false
}

// naive is a server with mcp-go's own handler.
func naive(t *testing.T) string {
	m := mcpserver.NewMCPServer("naive", "1", mcpserver.WithToolCapabilities(true))
	m.AddTool(mcp.NewTool("run"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("it ran"), nil
	})
	site := httptest.NewServer(mcpserver.NewSSEServer(m))
	t.Cleanup(func() { site.CloseClientConnections(); site.Close() })
	return site.URL
}

// TestOwnServerStaysOutOfReach: a server that its own commands could connect to does
// not start, unless they would need a token that they do not know.
func TestOwnServerStaysOutOfReach(t *testing.T) {
	if out, err := exec.Command(binary, "doctor", "--sandbox", "isolate").CombinedOutput(); err != nil {
		t.Skipf("commands cannot be isolated here: %s", out)
	}
	token := filepath.Join(t.TempDir(), "token")
	write(t, token, strings.Repeat("x", 43))
	if err := os.Chmod(token, 0o600); err != nil {
		t.Fatal(err)
	}
	dir := workspace(t)
	args := []string{"serve", "--transport", "http", "--sandbox", "isolate", "--network", "allow", "--listen", "127.0.0.1:0"}
	if _, stderr, code := cli(t, dir, nil, args...); code == 0 || !strings.Contains(stderr, "commands could connect to this server") {
		t.Errorf("%q: exit code %d, %s", args, code, stderr)
	}
	startSiteOf(t, binary, dir, append(args, "--auth-token-file", token)...)
	startSite(t, dir, "http", "--sandbox", "isolate")
}

// TestOwnSocketIsNotTakenOver: a server does not listen where a command could put a socket
// of its own in the place of the server's, to which clients would tell the token.
func TestOwnSocketIsNotTakenOver(t *testing.T) {
	if out, err := exec.Command(binary, "doctor", "--sandbox", "isolate").CombinedOutput(); err != nil {
		t.Skipf("commands cannot be isolated here: %s", out)
	}
	token := filepath.Join(t.TempDir(), "token")
	write(t, token, strings.Repeat("x", 43))
	if err := os.Chmod(token, 0o600); err != nil {
		t.Fatal(err)
	}
	dir := workspace(t)
	path := filepath.Join(dir, "mcp")
	args := []string{"serve", "--transport", "http", "--sandbox", "isolate", "--listen", "unix:" + path, "--auth-token-file", token}
	if _, stderr, code := cli(t, dir, nil, args...); code == 0 || !strings.Contains(stderr, "listen in its place") || !strings.Contains(stderr, "outside of the workspace") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	site := startSiteOf(t, binary, dir, append(args, "--read-only")...) // which runs no commands
	c := start(t, dir, "serve", "--sandbox", "isolate")
	c.initialize()
	if _, err := c.call("exec", run("mv mcp old")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("no command could take the name: this proves nothing")
	}
	site.kill()
}
