package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write the flags into README.md instead of comparing")

// TestReadmeFlags holds the README's table of flags to the code.
func TestReadmeFlags(t *testing.T) {
	const readme, begin, end = "../../README.md", "<!-- flags:begin -->\n", "<!-- flags:end -->"
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("README.md has lost the markers %s and %s", strings.TrimSpace(begin), end)
	}
	want := head + begin + flagTable() + end + tail
	if *update {
		if err := os.WriteFile(readme, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Error("the flags in README.md are stale: run go test ./cmd/perstack-base -update")
	}
}

func flagTable() string {
	var b strings.Builder
	b.WriteString("| flag | means |\n|---|---|\n")
	rootCommand().PersistentFlags().VisitAll(func(f *pflag.Flag) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", flagName(f), flagUsage(f))
	})
	return b.String()
}
