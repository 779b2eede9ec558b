package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const repository = "../.."

// fenced are answers of tools, which quote what they like.
var fenced = regexp.MustCompile("(?s)````text\n.*?\n````\n")

// pages are the documents for users.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "deploy/*/*.md"} {
		paths, err := filepath.Glob(filepath.Join(repository, pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s matches nothing (%v)", pattern, err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			all[path] = fenced.ReplaceAllString(string(text), "")
		}
	}
	return all
}

// TestDocsNameWhatExists: a flag that a document gives to perstack-base, or its
// variable, is one that there is; a file that it links to is there, and so is the heading.
func TestDocsNameWhatExists(t *testing.T) {
	known := map[string]bool{"help": true}
	variables := map[string]bool{tokenEnv: true, envPrefix + "USER": true, envPrefix + "E2E_NODE": true, envPrefix + "MEASURE": true, envPrefix + "WINE": true, envPrefix + "ALL": true} // the last four are of tests
	everyCommand(func(cmd *cobra.Command) {
		for _, name := range flagNames(cmd) {
			known[name] = true
		}
	})
	rootCommand().PersistentFlags().VisitAll(func(f *pflag.Flag) {
		known[f.Name], variables[envName(f.Name)] = true, true
	})
	line := regexp.MustCompile(`(?m)^.*\bperstack-base (?:serve|tools|call|skills|doctor|healthcheck|version|completion|--)[^|` + "`" + `\n]*`)
	flag := regexp.MustCompile(`(?:^| )--([a-z][a-z-]*)`)
	variable := regexp.MustCompile(`\b` + envPrefix + `[A-Z][A-Z_]*[A-Z]\b`)
	link := regexp.MustCompile(`\]\(([^)#:]*)(#[^)]*)?\)`)
	flags, links := 0, 0
	for path, text := range pages(t) {
		for _, l := range line.FindAllString(text, -1) {
			_, after, _ := strings.Cut(l, "perstack-base ")
			for _, m := range flag.FindAllStringSubmatch(" "+after, -1) {
				if flags++; !known[m[1]] {
					t.Errorf("%s gives perstack-base a flag --%s: %s", path, m[1], l)
				}
			}
		}
		for _, name := range variable.FindAllString(text, -1) {
			if !variables[name] && !strings.HasPrefix(path, repository+"/CHANGELOG") {
				t.Errorf("%s names a variable %s", path, name)
			}
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			links++
			target := path
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(path), m[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", path, m[1], err)
			} else if m[2] != "" && !anchors(t, target)[m[2]] {
				t.Errorf("%s links to %s%s, which is no heading", path, m[1], m[2])
			}
		}
	}
	if flags < 10 || links < 10 {
		t.Errorf("only %d flags and %d links were found", flags, links)
	}
}

// anchors are the headings of a document, as links name them.
func anchors(t *testing.T, path string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	drop := regexp.MustCompile(`[^\pL\pN _-]`)
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(text), -1) {
		all["#"+strings.ReplaceAll(drop.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return all
}

// TestQuotedMessagesExist: every message in the tables of docs/troubleshooting.md is
// a text of the source or an answer in a transcript.
func TestQuotedMessagesExist(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, "docs/troubleshooting.md"))
	if err != nil {
		t.Fatal(err)
	}
	words := said(t)
	quoted := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(string(text), -1)
	if len(quoted) < 20 {
		t.Fatalf("only %d messages are quoted", len(quoted))
	}
	for _, m := range quoted {
		for part := range strings.SplitSeq(m[1], "...") {
			if part = strings.TrimSpace(part); len(part) > 2 && !strings.Contains(words, part) {
				t.Errorf("%q: nothing says %q", m[1], part)
			}
		}
	}
	if strings.Contains(words, "a sentence that nothing says") {
		t.Error("the source has what it cannot have")
	}
}

// said is every string constant of the source and every transcript.
func said(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(repository, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasSuffix(d.Name(), "node_modules"):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".txtar"):
			text, err := os.ReadFile(path)
			b.WriteString(strings.ReplaceAll(string(text), `\"`, `"`))
			return err
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					b.WriteString(text + "\n")
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
