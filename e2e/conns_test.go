//go:build linux

package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestStrangersTakeNoDescriptors: connections without a token, more than the server
// may have descriptors, keep neither calls nor new clients from being served.
func TestStrangersTakeNoDescriptors(t *testing.T) {
	const limit, many = 1024, 1100
	script := filepath.Join(t.TempDir(), "limited")
	text := fmt.Sprintf("#!/bin/sh\nulimit -n %d && exec %q \"$@\"\n", limit, binary)
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, hello := range map[string]string{
		"health":       "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
		"unauthorized": "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
		"silent":       "",
	} {
		t.Run(name, func(t *testing.T) {
			s := startSiteOf(t, script, workspace(t), "--transport", "http", "--listen", "127.0.0.1:0", "--auth-token-file", tokenFile(t))
			v := visit(s, false)
			v.token = secret
			v.initialize()
			v.mustCall("exec", string(run("echo before")), "before")
			for range many {
				conn, err := net.DialTimeout("tcp", strings.TrimPrefix(s.base, "http://"), 10*time.Second)
				if err != nil {
					t.Log(err) // the server does not accept any more
					break
				}
				defer conn.Close()
				_, _ = conn.Write([]byte(hello))
			}
			if hello != "" {
				time.Sleep(time.Second) // for as long the server may answer them
			}
			v.mustCall("exec", string(run("echo after")), "after")
			next := visit(s, false)
			next.token = secret
			next.initialize()
			next.mustCall("exec", string(run("echo next")), "next")
		})
	}
}
