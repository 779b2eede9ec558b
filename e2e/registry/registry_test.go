// Package registry holds server.json to the schema that the MCP registry publishes, and to what its own validation
// asks besides. It is a module of its own, so that the product depends on neither.
package registry

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	apiv0 "github.com/modelcontextprotocol/registry/pkg/api/v0"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	registryModule = "github.com/modelcontextprotocol/registry"
	serverFile     = "../../server.json"
	schemaName     = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
)

// TestServerFile checks the committed file, and the same with a digest as .ci/package fills it in.
func TestServerFile(t *testing.T) {
	schema := publishedSchema(t)
	text, err := os.ReadFile(serverFile)
	if err != nil {
		t.Fatal(err)
	}
	digest := []byte(`"fileSha256": "` + strings.Repeat("0", 64) + `", "registryType": "mcpb"`)
	filled := bytes.Replace(text, []byte(`"registryType": "mcpb"`), digest, 1)
	if bytes.Equal(filled, text) {
		t.Fatal("server.json has no bundle")
	}
	for _, file := range [][]byte{text, filled} {
		if err := schema.Validate(decoded(t, file)); err != nil {
			t.Error(err)
		}
	}
	wrong := bytes.Replace(text, []byte(`"description": "`), []byte(`"description": "`+strings.Repeat("long ", 20)), 1)
	if schema.Validate(decoded(t, wrong)) == nil {
		t.Error("the schema takes a description of more than 100 characters: it checks nothing")
	}
}

// TestServerFileHasOnlyKnownFields decodes it into the registry's own type.
func TestServerFileHasOnlyKnownFields(t *testing.T) {
	text, err := os.ReadFile(serverFile)
	if err != nil {
		t.Fatal(err)
	}
	var server apiv0.ServerJSON
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&server); err != nil {
		t.Fatal(err)
	}
	if server.Schema != schemaName {
		t.Errorf("$schema is %s", server.Schema)
	}
	for _, p := range server.Packages {
		// What the registry refuses when it is published (internal/validators/registries).
		if p.RegistryBaseURL != "" || p.RegistryType == "oci" && (p.Version != "" || p.FileSHA256 != "") {
			t.Errorf("%s has fields that the registry refuses", p.Identifier)
		}
		if p.RegistryType == "mcpb" && !strings.HasPrefix(p.Identifier, "https://github.com/") {
			t.Errorf("the registry takes no bundles from %s", p.Identifier)
		}
	}
}

// TestImagesProveWhoseTheyAre: the registry takes an image only when its label has the name in server.json.
func TestImagesProveWhoseTheyAre(t *testing.T) {
	var server struct{ Name string }
	text, err := os.ReadFile(serverFile)
	if err == nil {
		err = json.Unmarshal(text, &server)
	}
	if err != nil {
		t.Fatal(err)
	}
	const label = "io.modelcontextprotocol.server.name"
	for path, want := range map[string]int{"../../Dockerfile": 2, "../../deploy/images/Dockerfile": 2, "../../.goreleaser.yaml": 1} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(regexp.QuoteMeta(label)+`[=:] ?"?([^"\s]+)`).FindAllStringSubmatch(string(text), -1)
		if len(found) != want {
			t.Errorf("%s has the label %d times, not once for each of %d images", path, len(found), want)
		}
		for _, m := range found {
			if m[1] != server.Name {
				t.Errorf("%s labels an image %s, server.json says %s", path, m[1], server.Name)
			}
		}
	}
}

// publishedSchema is the schema as the registry's own module carries it.
func publishedSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", registryModule).Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "internal/validators/schemas/2025-12-11.json"))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(schemaName, decoded(t, text)); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile(schemaName)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func decoded(t *testing.T, text []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}
