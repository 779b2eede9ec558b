package workloads

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const documentPath = "../../docs/workloads.md"

const preamble = `# Workloads

What commands can do inside the walls. A test (` + "`go test ./e2e/workloads`" + `) runs every row with the real programs, with
` + "`--sandbox landlock`" + ` and with ` + "`--sandbox isolate`" + `, as root and as another user, and writes this page. A row works as it does without
confinement, or it is refused at once with a sentence that names the way out; ` + "`...`" + ` stands for what differs from one
machine to the next. The network is closed in all of them: with ` + "`--network allow`" + ` everything that is refused because of it works.

How to permit what is refused: [recipes](recipes.md). What a message means: [troubleshooting](troubleshooting.md).
`

// document is docs/workloads.md as the table has it.
func document() string {
	var b strings.Builder
	b.WriteString(preamble)
	for _, s := range table {
		fmt.Fprintf(&b, "\n## %s\n\n| workload | outcome |\n|---|---|\n", s.title)
		for _, r := range s.rows {
			fmt.Fprintf(&b, "| %s | %s |\n", strings.ReplaceAll(r.name, "|", `\|`), r.outcome())
		}
	}
	return b.String()
}

// outcome is what the document says of a row.
func (r row) outcome() string {
	said := map[string]string{}
	for _, mechanism := range mechanisms {
		said[mechanism] = "works"
		if sentence := r.sentence(mechanism); sentence != "" {
			said[mechanism] = "refused: `" + strings.NewReplacer("OUTSIDE", "...", "ROW", "...", "PORT", "...").Replace(sentence) + "`"
		}
	}
	first := said[mechanisms[0]]
	if second := said[mechanisms[1]]; first != second {
		first = fmt.Sprintf("`%s`: %s; `%s`: %s", mechanisms[0], first, mechanisms[1], second)
	}
	if r.note != "" {
		first += "; " + r.note
	}
	return first
}

// TestDocument: the page says what the table says, and the table can be run.
func TestDocument(t *testing.T) {
	names := map[string]bool{}
	for _, r := range rows() {
		if names[r.slug()] || r.slug() == "" || len(r.calls) == 0 {
			t.Errorf("%q: the name must be its own, and there must be something to run", r.name)
		}
		names[r.slug()] = true
		if r.shows == "" && (r.says == "" && len(r.saysOnly) < len(mechanisms)) {
			t.Errorf("%s: nothing shows that it works", r.name)
		}
	}
	if *update {
		if err := os.WriteFile(documentPath, []byte(document()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(documentPath)
	if err != nil || string(text) != document() {
		t.Errorf("docs/workloads.md is stale (%v): run go test ./e2e/workloads -run TestDocument -update and read the difference", err)
	}
}
