package e2e

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// bundleVersion is what the tests package.
const bundleVersion = "1.2.3"

// packaged runs .ci/package on the program under test and returns the directory with what it made.
func packaged(t *testing.T) string {
	t.Helper()
	clients := nodeDir(t)
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("needs jq")
	}
	dist := t.TempDir()
	var artifacts []map[string]string
	for _, system := range []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"} {
		goos, goarch, _ := strings.Cut(system, "/")
		path := filepath.Join(dist, goos+"-"+goarch)
		program := []byte("a program for another system")
		if system == runtime.GOOS+"/"+runtime.GOARCH {
			var err error
			if program, err = os.ReadFile(binary); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(path, program, 0o755); err != nil {
			t.Fatal(err)
		}
		artifacts = append(artifacts, map[string]string{"type": "Binary", "goos": goos, "goarch": goarch, "path": path})
	}
	list, err := json.Marshal(artifacts)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dist, "artifacts.json"), list, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := node(clients)
	cmd.Path, cmd.Args = "/bin/bash", []string{"bash", "../.ci/package", dist, bundleVersion}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dist
}

// TestBundle makes the bundle for desktop clients, and has its server do some work as a client starts it: with what the
// user has configured, from a directory into which files were unpacked without modes.
func TestBundle(t *testing.T) {
	dist := packaged(t)
	bundle := filepath.Join(dist, "perstack-base_"+bundleVersion+".mcpb")
	installed := unpackWithoutModes(t, bundle)
	var manifest struct {
		Version string
		Server  struct {
			Config struct {
				Command string
				Args    []string
			} `json:"mcp_config"`
		}
		Tools []struct{ Name string }
	}
	readJSON(t, filepath.Join(installed, "manifest.json"), &manifest)
	if manifest.Version != bundleVersion {
		t.Errorf("the manifest is of version %s", manifest.Version)
	}
	work := workspace(t)
	fill := strings.NewReplacer("${__dirname}", installed, "${user_config.workspace}", work, "${user_config.network}", "deny")
	args := manifest.Server.Config.Args
	for i := range args {
		if args[i] = fill.Replace(args[i]); strings.Contains(args[i], "${") {
			t.Errorf("nothing fills in %s", args[i])
		}
	}
	cmd := exec.Command(fill.Replace(manifest.Server.Config.Command), args...)
	cmd.Dir = "/"
	c := startCommand(t, cmd)
	c.initialize()
	if _, err := c.call("writeTextFile", json.RawMessage(`{"path":"a.txt","text":"from the bundle"}`)); err != nil {
		t.Fatal(err)
	}
	result, err := c.call("exec", run("cat a.txt"))
	if err != nil || result.IsError || !strings.Contains(text(t, result), "from the bundle") {
		t.Errorf("exec answers %v (%v)", result, err)
	}
	var listed struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(c.request("tools/list", nil), &listed); err != nil || len(listed.Tools) != len(manifest.Tools) {
		t.Errorf("the server lists %d tools, the manifest %d (%v)", len(listed.Tools), len(manifest.Tools), err)
	}
}

// TestRegistryEntryIsFilledIn: the version and the digest of what was packaged stand in server.json, and nothing of
// the committed file's version 0.0.0 is left.
func TestRegistryEntryIsFilledIn(t *testing.T) {
	dist := packaged(t)
	raw, err := os.ReadFile(filepath.Join(dist, "server.json"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "0.0.0") {
		t.Errorf("server.json still has a version 0.0.0: %s", raw)
	}
	bundle, err := os.ReadFile(filepath.Join(dist, "perstack-base_"+bundleVersion+".mcpb"))
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(bundle)
	var entry struct {
		Version  string
		Packages []struct{ RegistryType, Identifier, FileSha256 string }
	}
	readJSON(t, filepath.Join(dist, "server.json"), &entry)
	if entry.Version != bundleVersion || len(entry.Packages) != 2 {
		t.Fatalf("server.json is %s", raw)
	}
	for _, p := range entry.Packages {
		want := map[string]string{"mcpb": hex.EncodeToString(digest[:])}[p.RegistryType]
		if p.FileSha256 != want || !strings.Contains(p.Identifier, bundleVersion) {
			t.Errorf("%s: %s with digest %q, not %q", p.RegistryType, p.Identifier, p.FileSha256, want)
		}
	}
	entryYAML, err := os.ReadFile(filepath.Join(dist, "docker-mcp/server.yaml"))
	if err != nil || strings.Contains(string(entryYAML), strings.Repeat("0", 40)) {
		t.Errorf("docker-mcp/server.yaml names no commit (%v)", err)
	}
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// unpackWithoutModes unpacks a zip as some clients do: no file can be executed.
func unpackWithoutModes(t *testing.T, path string) string {
	t.Helper()
	dir := t.TempDir()
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for _, f := range z.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(in)
		in.Close()
		if err != nil || !filepath.IsLocal(f.Name) {
			t.Fatal(f.Name, err)
		}
		to := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
