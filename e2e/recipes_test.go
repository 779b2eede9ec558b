package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// recipe returns the command of docs/recipes.md that begins so, all its lines.
func recipe(t *testing.T, begins string) string {
	t.Helper()
	page, err := os.ReadFile("../docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(page), "\n    "+begins)
	if !ok {
		t.Fatalf("docs/recipes.md has no command that begins %q", begins)
	}
	command := begins
	for i, line := range strings.Split(text, "\n") {
		// A command goes on behind a backslash and within quotes.
		if i > 0 && !strings.HasSuffix(command, `\`) && strings.Count(command, "'")%2 == 0 {
			break
		}
		if i > 0 {
			command += "\n"
		}
		command += line
	}
	return command
}

// sh runs a command of the recipes.
func sh(t *testing.T, dir, command string) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s\n%v\n%s", command, err, out)
	}
	return string(out)
}

// TestRecipeHTTP carries out the recipes for a server with a token and a certificate.
func TestRecipeHTTP(t *testing.T) {
	for _, program := range []string{"curl", "openssl", "base64"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("the recipe needs ", program)
		}
	}
	dir := workspace(t)
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("read by curl"), 0o644); err != nil {
		t.Fatal(err)
	}
	sh(t, dir, recipe(t, "head -c 32 /dev/urandom"))
	token := filepath.Join(dir, "token")
	s := startSite(t, dir, "http", "--auth-token-file", token)
	call := recipe(t, "curl http://127.0.0.1:8080/mcp")
	if out := sh(t, dir, strings.Replace(call, "http://127.0.0.1:8080", s.base, 1)); !strings.Contains(out, "read by curl") {
		t.Errorf("curl got %s", out)
	}
	sh(t, dir, strings.Replace(recipe(t, "openssl req"), "192.0.2.7", "127.0.0.1", 1))
	s = startSite(t, dir, "http", "--auth-token-file", token, "--tls-cert", filepath.Join(dir, "cert.pem"), "--tls-key", filepath.Join(dir, "key.pem"))
	call = strings.Replace(call, "curl http://127.0.0.1:8080", "curl --cacert cert.pem "+s.base, 1)
	if out := sh(t, dir, call); !strings.Contains(out, "read by curl") {
		t.Errorf("curl got %s over HTTPS", out)
	}
}
