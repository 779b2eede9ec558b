package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/e2e/transcript"
	"github.com/perstack-ai/perstack-base/server/internal/jsonrpc"
	"github.com/perstack-ai/perstack-base/tools"
)

const toolDocs = "../docs/tools.md"

const toolDocsHead = `# The tools, one by one

Generated from the schemas and the transcripts by ` + "`go test ./server -update`" + `; a test compares. The examples are real calls and
real answers. An argument without a default is optional unless it says required; ` + "`null`" + ` is as good as leaving it out.
Paths are relative to the workspace, or absolute below it.

`

// TestToolDocs comes, by the name of its file, after the test that writes the
// answers of transcripts, from which docs/tools.md is made.
func TestToolDocs(t *testing.T) {
	scripts, err := transcript.Load(transcriptDir)
	if err != nil {
		t.Fatal(err)
	}
	all := listAll(t)
	var b strings.Builder
	b.WriteString(toolDocsHead)
	writeLimits(&b, all)
	for _, p := range Profiles {
		fmt.Fprintf(&b, "\n## Profile %s\n\n%s List it with `--tools %s`.\n", p.Name, p.Summary, p.Name)
		for _, l := range all[p] {
			i := slices.IndexFunc(scripts, func(s *transcript.Script) bool { return s.Profile == p.Name && s.Tool == l.Tool.Name })
			if i < 0 {
				t.Fatalf("%s.%s has no transcript", p.Name, l.Tool.Name)
			}
			writeTool(t, &b, l, scripts[i])
		}
	}
	golden(t, toolDocs, []byte(b.String()))
}

// writeLimits is the table of numbers that all tools have.
func writeLimits(b *strings.Builder, all map[*tools.Profile][]Listed) {
	b.WriteString("## Limits\n\n`--max-output` changes how long answers are (not where it says fixed), `--timeout` when commands are ended\n" +
		"that set no time of their own. Text is read from files of any size; what is changed in place, shown or named has a largest size.\n\n| tool | text in one answer | largest file | time limit unless given | longest time |\n|---|---|---|---|---|\n")
	for _, p := range Profiles {
		for _, l := range all[p] {
			tool := p.Tool(l.Tool.Name)
			limit, longest := "", ""
			if tool.Timeout > 0 {
				limit = shortTime(tool.Timeout)
			}
			for _, a := range Arguments(l.Tool) {
				if def, ok := a.Default.(float64); ok && strings.HasPrefix(a.Name, "timeout") {
					unit := time.Second
					if strings.HasPrefix(a.Description, "Milliseconds") {
						unit = time.Millisecond
					}
					limit = shortTime(time.Duration(def) * unit)
					longest = fmt.Sprintf("%s (`%s`: %.0f)", shortTime(time.Duration(*a.Maximum)*unit), a.Name, *a.Maximum)
				}
			}
			largest := ""
			if tool.Largest > 0 {
				largest = fmt.Sprintf("%d bytes", tool.Largest)
			}
			fmt.Fprintf(b, "| `%s.%s` | %s | %s | %s | %s |\n", p.Name, l.Tool.Name, answerSize(tool), largest, limit, longest)
		}
	}
}

// answerSize says how long an answer can be.
func answerSize(tool *tools.Tool) string {
	switch {
	case tool.Budget == 0:
		return "short"
	case tool.Budget == tools.Longest:
		return "what the skill has, fixed"
	case tool.Fixed:
		return fmt.Sprintf("%d bytes, fixed", tool.Budget)
	}
	return fmt.Sprintf("%d bytes", tool.Budget)
}

// shortTime is a time without parts that are zero: 24h, 55s.
func shortTime(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = strings.TrimSuffix(text, zero[1:])
		}
	}
	return text
}

func writeTool(t *testing.T, b *strings.Builder, l Listed, script *transcript.Script) {
	tool := l.Profile.Tool(l.Tool.Name)
	fmt.Fprintf(b, "\n### %s\n\n", tool.Name)
	if strings.Contains(tool.Description, "\n") {
		fence(b, tool.Description)
	} else {
		fmt.Fprintln(b, tool.Description)
	}
	fmt.Fprintf(b, "\n%s\n", effectSentence(tool.Effect))
	writeArguments(b, l)
	writeExample(t, b, script)
	writeErrors(b, script)
}

func effectSentence(e tools.Effect) string {
	switch {
	case e.ReadOnly:
		return "It changes nothing."
	case e.OpenWorld:
		return "It runs commands; `--read-only` leaves it out."
	case e.AllowedReadOnly():
		return "It changes the state of the session only; `--read-only` keeps it."
	}
	return "It changes files; `--read-only` leaves it out."
}

func writeArguments(b *strings.Builder, l Listed) {
	arguments := Arguments(l.Tool)
	if len(arguments) == 0 {
		b.WriteString("\nIt takes no arguments.\n")
		return
	}
	b.WriteString("\n| argument | type | default | bounds | meaning |\n|---|---|---|---|---|\n")
	for _, a := range arguments {
		def := ""
		if a.Required {
			def = "required"
		} else if a.Default != nil {
			def = "`" + string(tools.JSON(a.Default)) + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", a.Name, a.Type, def, bounds(a), cell(a.Description))
	}
}

func bounds(a Argument) string {
	var parts []string
	switch {
	case a.Minimum != nil && a.Maximum != nil:
		parts = append(parts, fmt.Sprintf("%.0f to %.0f", *a.Minimum, *a.Maximum))
	case a.Minimum != nil:
		parts = append(parts, fmt.Sprintf("at least %.0f", *a.Minimum))
	}
	if a.MaxLength != nil {
		parts = append(parts, fmt.Sprintf("at most %d characters", *a.MaxLength))
	}
	if a.Enum != nil {
		parts = append(parts, "`"+strings.Join(a.Enum, "` `")+"`")
	}
	return strings.Join(parts, ", ")
}

// writeExample shows the first call that succeeds, one with arguments if there is any.
func writeExample(t *testing.T, b *strings.Builder, script *transcript.Script) {
	var shown *transcript.Step
	for _, step := range script.Steps {
		if step.Tool == script.Tool && !step.WantError && (shown == nil || string(shown.Args) == "{}") {
			shown = step
		}
	}
	if shown == nil {
		t.Fatalf("%s shows no call that succeeds", script.Path)
	}
	b.WriteString("\nA call and its answer:\n\n")
	fence(b, string(shown.Args)+"\n\n"+shorten(strings.TrimSpace(shown.Want)))
}

// writeErrors lists the refusals of the transcript, each kind of sentence once.
func writeErrors(b *strings.Builder, script *transcript.Script) {
	const most = 20
	var rows []string
	for _, step := range script.Steps {
		if !step.WantError || step.Tool != script.Tool {
			continue
		}
		if row := errorRow(step.Want); row != "" && !slices.Contains(rows, row) && len(rows) < most {
			rows = append(rows, row)
		}
	}
	if rows != nil {
		b.WriteString("\n| refused | code | way out |\n|---|---|---|\n" + strings.Join(rows, ""))
	}
}

// errorRow reads a failure of any dialect; "" for output of a command that failed.
func errorRow(want string) string {
	want = strings.TrimSpace(want)
	var object struct {
		Error   string
		Code    string
		Hint    string
		Sandbox string
	}
	if json.Unmarshal([]byte(want), &object) != nil {
		lines := strings.SplitN(want, "\n", 3)
		text, ok := strings.CutPrefix(lines[0], "Error: ")
		if !ok {
			return ""
		}
		object.Error = text
		if len(lines) > 1 {
			object.Hint = lines[1]
		}
	}
	if object.Error == "" {
		return ""
	}
	return fmt.Sprintf("| %s | %s | %s |\n", cell(jsonrpc.Clip(object.Error, 160)), object.Code, cell(jsonrpc.Clip(object.Hint, 160)))
}

// cell makes a text fit for a table of Markdown.
func cell(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.NewReplacer("|", "\\|", "<", "&lt;", "*", "\\*", "$WORK", "/work").Replace(text)
}

func fence(b *strings.Builder, text string) {
	b.WriteString("````text\n" + strings.ReplaceAll(text, "$WORK", "/work") + "\n````\n")
}

// shorten keeps an example readable; what it cuts shows as three dots.
func shorten(text string) string {
	const mostLines, widest = 15, 400
	lines := strings.Split(text, "\n")
	for i := range lines {
		if r := []rune(lines[i]); len(r) > widest {
			lines[i] = string(r[:widest]) + " ..."
		}
	}
	if len(lines) > mostLines {
		lines = append(lines[:mostLines], "...")
	}
	return strings.Join(lines, "\n")
}
