package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/perstack-ai/perstack-base/sandbox/process"
)

var update = flag.Bool("update", false, "write the tables of documents instead of comparing")

// TestReadmeFlags holds the README's table of flags to the code.
func TestReadmeFlags(t *testing.T) { documentBlock(t, "README.md", "flags", flagTable()) }

// TestSecurityDocsPolicy holds what the security model says that commands can reach to the code.
func TestSecurityDocsPolicy(t *testing.T) {
	documentBlock(t, "docs/security.md", "policy", policyTable())
}

// documentBlock compares, or with -update writes, what stands between two markers.
func documentBlock(t *testing.T, document, name, block string) {
	t.Helper()
	path := filepath.Join(repository, document)
	begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has lost the markers %s and %s", document, strings.TrimSpace(begin), end)
	}
	want := head + begin + block + end + tail
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Errorf("the %s in %s are stale: run go test ./cmd/perstack-base -update", name, document)
	}
}

func policyTable() string {
	var b strings.Builder
	b.WriteString("| access | what | why |\n|---|---|---|\n")
	for _, r := range process.DefaultRules() {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.Access, r.Path, r.Reason)
	}
	return b.String()
}

func flagTable() string {
	var b strings.Builder
	b.WriteString("| flag | means |\n|---|---|\n")
	rootCommand().PersistentFlags().VisitAll(func(f *pflag.Flag) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", flagName(f), flagUsage(f))
	})
	return b.String()
}
