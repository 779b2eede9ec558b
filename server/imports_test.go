package server

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/perstack-ai/perstack-base/"

// rules says which of our packages, and which of os and os/exec, the code below
// a folder may import, with what lies below it, unless "=" stands before its name. The
// longest matching folder counts; tests are free. Expressions that are compiled late know
// nothing of ours, and all of sandbox may use them; codes of failures know nothing
// either, and everybody may use them. Spans are told of from everywhere but the pure
// engines; sandbox/trace itself knows nothing.
var rules = []struct {
	folder string
	may    []string
}{
	{"cmd/", []string{"cmd/perstack-base/internal", "server", "sandbox", "tools", "skillrepo", "os", "os/exec"}},
	{"cmd/perstack-base/internal/", []string{"server", "sandbox"}},
	{"server/", []string{"server/internal", "tools", "sandbox", "skillrepo"}},
	{"server/internal/jsonrpc/", nil},
	{"server/internal/tasks/", []string{"server/internal/jsonrpc", "tools"}},
	{"server/internal/dispatch/", []string{"server/internal/jsonrpc", "server/internal/tasks", "tools", "sandbox/trace"}},
	{"server/internal/stream/", []string{"server/internal/jsonrpc", "server/internal/dispatch", "tools"}},
	{"server/internal/web/", []string{"server/internal/jsonrpc", "server/internal/dispatch", "server/internal/stream", "tools"}},
	{"server/internal/skillsapi/", []string{"server/internal/jsonrpc", "server/internal/dispatch", "server/internal/views", "tools", "skillrepo"}},
	{"server/internal/views/", []string{"server/internal/dispatch", "tools"}},
	{"server/internal/servertest/", []string{"server/internal/jsonrpc", "server/internal/dispatch", "tools"}},
	{"tools/", []string{"sandbox", "skillrepo", "tools/internal"}},
	{"tools/internal/", []string{"tools/internal"}},
	{"tools/internal/skill/", []string{"sandbox", "skillrepo", "tools/internal"}},
	{"sandbox/", nil},
	{"sandbox/files/", []string{"=sandbox", "sandbox/internal/disk", "sandbox/internal/confine/policy", "os"}},
	{"sandbox/scratch/", []string{"=sandbox", "sandbox/files", "sandbox/internal/disk", "sandbox/internal/confine/policy", "os"}},
	{"sandbox/process/", []string{"=sandbox", "sandbox/scratch", "sandbox/trace", "sandbox/internal", "sandbox/process/capture", "sandbox/process/quota", "sandbox/process/internal", "os", "os/exec"}},
	{"sandbox/process/quota/", []string{"sandbox/process/internal/tree", "sandbox/process/internal/usage", "sandbox/internal/cgroup", "sandbox/internal/confine", "sandbox/internal/proc", "os"}},
	{"sandbox/process/capture/", []string{"os"}},
	{"sandbox/process/internal/environ/", []string{"sandbox/internal/confine/policy", "sandbox/internal/disk", "sandbox/internal/network", "sandbox/internal/settings", "os"}},
	{"sandbox/process/internal/private/", []string{"sandbox/process/internal/environ", "sandbox/internal/disk", "sandbox/internal/settings", "os"}},
	{"sandbox/process/internal/home/", []string{"sandbox/process/internal/environ", "sandbox/process/internal/private", "sandbox/scratch", "sandbox/internal/confine/policy", "sandbox/internal/settings", "os"}},
	{"sandbox/process/internal/input/", nil},
	{"sandbox/process/internal/tree/", []string{"=sandbox", "sandbox/process/internal/environ", "sandbox/process/internal/private", "sandbox/internal/confine", "sandbox/internal/proc", "sandbox/internal/pty", "os"}},
	{"sandbox/process/internal/usage/", []string{"sandbox/internal/confine", "sandbox/internal/proc", "os"}},
	{"sandbox/process/internal/containers/", []string{"=sandbox", "sandbox/scratch", "sandbox/internal", "sandbox/process/capture", "sandbox/process/internal/environ", "sandbox/process/internal/private", "sandbox/process/internal/tree", "os", "os/exec"}},
	{"sandbox/trace/", nil},
	{"sandbox/fault/", nil},
	{"sandbox/internal/", []string{"sandbox/internal/proc", "sandbox/internal/netlink", "os"}},
	{"sandbox/internal/lazyregexp/", nil},
	{"sandbox/internal/remote/", []string{"sandbox/process/capture", "os"}},
	{"sandbox/internal/disk/", []string{"=sandbox", "os"}},
	{"sandbox/internal/confine/", []string{"sandbox/internal/confine", "sandbox/internal/network", "sandbox/internal/proc", "sandbox/internal/pty", "os"}},
	{"sandbox/internal/confine/kernel/", []string{"sandbox/internal/confine/policy", "sandbox/internal/proc", "os"}},
	{"sandbox/internal/confine/selftest/", []string{"sandbox/internal/confine/kernel", "sandbox/internal/confine/policy", "os"}},
	{"sandbox/internal/confine/seccomp/", []string{"sandbox/internal/confine/kernel", "os"}},
	{"sandbox/internal/confine/gateway/", []string{"sandbox/internal/confine/kernel", "sandbox/internal/confine/seccomp", "sandbox/internal/confine/selftest", "sandbox/internal/network", "sandbox/internal/netlink", "os"}},
	{"sandbox/internal/confine/namespaces/", []string{"sandbox/internal/confine/gateway", "sandbox/internal/confine/kernel", "sandbox/internal/confine/policy", "sandbox/internal/confine/seccomp", "sandbox/internal/confine/selftest", "sandbox/internal/network", "sandbox/internal/proc", "sandbox/internal/pty", "os"}},
	{"sandbox/internal/confine/broker/", []string{"sandbox/internal/confine/broker", "sandbox/internal/confine/hints", "sandbox/internal/confine/kernel", "sandbox/internal/confine/policy", "sandbox/internal/confine/seccomp", "sandbox/internal/network", "sandbox/internal/proc", "sandbox/internal/pty", "os"}},
	{"sandbox/internal/confine/broker/datagrams/", []string{"sandbox/internal/confine/kernel", "sandbox/internal/confine/policy", "sandbox/internal/network", "sandbox/internal/proc", "os"}},
	{"sandbox/internal/confine/broker/listeners/", []string{"sandbox/internal/confine/kernel", "sandbox/internal/confine/policy", "sandbox/internal/netlink", "sandbox/internal/proc", "os"}},
	{"sandbox/internal/confine/threads/", []string{"sandbox/internal/confine/broker", "sandbox/internal/confine/hints", "sandbox/internal/confine/kernel", "sandbox/internal/confine/policy", "sandbox/internal/confine/seccomp", "sandbox/internal/confine/selftest", "sandbox/internal/network", "sandbox/internal/proc", "sandbox/internal/pty", "os"}},
	{"sandbox/internal/confine/policy/", []string{"os"}},
	{"sandbox/internal/confine/hints/", []string{"sandbox/internal/confine/policy", "os"}},
	{"skillrepo/", []string{"skillrepo/internal"}},
	{"skillrepo/internal/", nil},
	{"e2e/", []string{"e2e", "os", "os/exec"}},
	{"e2e/conformance/", []string{"server", "tools", "sandbox", "os"}},
	{"examples/", []string{"server", "tools", "sandbox", "os"}},
}

// TestImportRules keeps the house in its shape: the machine is touched by
// sandbox alone, engines know nothing of tools, profiles nothing of each other.
func TestImportRules(t *testing.T) {
	files := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files++
		checkImports(t, filepath.ToSlash(path[len("../"):]), path)
		return nil
	})
	if err != nil || files == 0 {
		t.Fatalf("%d files read: %v", files, err)
	}
}

// TestFoldersAreSmall: a folder has at most 25 files that are no tests.
func TestFoldersAreSmall(t *testing.T) {
	const most = 25
	count := map[string]int{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			count[filepath.Dir(path)]++
		}
		return err
	})
	if err != nil || len(count) == 0 {
		t.Fatalf("%d folders: %v", len(count), err)
	}
	for folder, n := range count {
		if n > most {
			t.Errorf("%s has %d files, more than %d: cut it", folder, n, most)
		}
	}
}

func checkImports(t *testing.T, name, path string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		ours, isOurs := strings.CutPrefix(imported, module)
		if ours == "sandbox/internal/lazyregexp" && strings.HasPrefix(name, "sandbox/") || ours == "sandbox/fault" {
			continue
		}
		if (isOurs || imported == "os" || imported == "os/exec") && !allowed(name, ours) {
			t.Errorf("%s must not import %s", name, imported)
		}
	}
}

func allowed(file, imported string) bool {
	var may []string
	longest := -1
	for _, r := range rules {
		if strings.HasPrefix(file, r.folder) && len(r.folder) > longest {
			may, longest = r.may, len(r.folder)
		}
	}
	profile, _, _ := strings.Cut(strings.TrimPrefix(file, "tools/"), "/")
	if isProfile(profile) && imported == "tools" {
		return true
	}
	if strings.HasPrefix(file, "server/") && !strings.HasPrefix(file, "server/internal/") && isProfile(strings.TrimPrefix(imported, "tools/")) {
		return true
	}
	for _, prefix := range may {
		if imported == strings.TrimPrefix(prefix, "=") || (strings.HasPrefix(imported, prefix+"/") && !isProfile(strings.TrimPrefix(imported, "tools/"))) {
			return true
		}
	}
	return false
}

func isProfile(name string) bool {
	for _, p := range Profiles {
		if p.Name == name {
			return true
		}
	}
	return false
}

// TestDependenciesHaveReasons: a direct dependency stands in CONTRIBUTING.md with
// the reason for it, and nothing else does.
func TestDependenciesHaveReasons(t *testing.T) {
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile("../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	direct := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\t(\S+/\S+) v\S+$`).FindAllStringSubmatch(string(mod), -1) {
		direct[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`(?m)^\| (\S+/\S+) \| \S`).FindAllStringSubmatch(string(guide), -1) {
		if !direct[m[1]] {
			t.Errorf("CONTRIBUTING.md names %s, which go.mod does not", m[1])
		}
		delete(direct, m[1])
	}
	for module := range direct {
		t.Errorf("%s has no reason in CONTRIBUTING.md", module)
	}
}
