package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/perstack-ai/perstack-base/sandbox/process"
)

var update = flag.Bool("update", false, "write the flags into README.md instead of comparing")

// TestReadmeFlags holds the README's table of flags to the code.
func TestReadmeFlags(t *testing.T) { readmeBlock(t, "flags", flagTable()) }

// TestReadmePolicy holds what README says that commands can reach to the code.
func TestReadmePolicy(t *testing.T) { readmeBlock(t, "policy", policyTable()) }

// readmeBlock compares, or with -update writes, what stands between two markers.
func readmeBlock(t *testing.T, name, block string) {
	t.Helper()
	const readme = "../../README.md"
	begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->"
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("README.md has lost the markers %s and %s", strings.TrimSpace(begin), end)
	}
	want := head + begin + block + end + tail
	if *update {
		if err := os.WriteFile(readme, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Errorf("the %s in README.md are stale: run go test ./cmd/perstack-base -update", name)
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
