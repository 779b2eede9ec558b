package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"golang.org/x/tools/txtar"
)

// A Caller performs one call and returns its result, over whatever transport.
type Caller func(tool string, args json.RawMessage) (*mcp.CallToolResult, error)

// An Answer is what one step got.
type Answer struct {
	Text    string
	IsError bool
}

func (a Answer) file() txtar.File {
	name := "want"
	if a.IsError {
		name = "want error"
	}
	return txtar.File{Name: name, Data: []byte(a.Text)}
}

// Run performs the steps in the workspace dir, which Setup has filled, and
// returns the answers. The first call that has no result at all ends it.
func (s *Script) Run(dir string, call Caller) ([]Answer, error) {
	answers := make([]Answer, len(s.Steps))
	for i, step := range s.Steps {
		args := json.RawMessage(placeholder.ReplaceAllLiteral(step.Args, []byte(dir)))
		result, err := call(step.Tool, args)
		if err != nil {
			return nil, fmt.Errorf("step %d, %s: %w", i+1, step.Tool, err)
		}
		if err := consistent(result); err != nil {
			return nil, fmt.Errorf("step %d, %s: %w", i+1, step.Tool, err)
		}
		answers[i] = Answer{Text: mask(strings.ReplaceAll(render(result), dir, "$WORK")), IsError: result.IsError}
	}
	return answers, nil
}

// Diff compares the answers with what the transcript wants, "" when they agree.
func (s *Script) Diff(answers []Answer) string {
	var b strings.Builder
	for i, step := range s.Steps {
		got := answers[i]
		if got.Text != step.Want || got.IsError != step.WantError || step.want == nil {
			fmt.Fprintf(&b, "%s, step %d: call %s %s\n--- want (error %v)\n%s--- got (error %v)\n%s", s.Path, i+1, step.Tool, step.Args, step.WantError, step.Want, got.IsError, got.Text)
		}
	}
	return b.String()
}

// placeholder stands for the workspace; $WORK_DIR is something else.
var placeholder = regexp.MustCompile(`\$WORK\b`)

// masks hide what differs from run to run and from machine to machine.
var masks = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`"duration_ms":\d+`), `"duration_ms":0`},
	{regexp.MustCompile(`session-[0-9a-f]{8}`), "session-00000000"},
	{regexp.MustCompile(`run_\d{8}T\d{6}_[0-9a-f]{6}`), "run_0"},
	{regexp.MustCompile(`[^\s"']*/perstack-base[^\s"']*/run/session-`), "$$RUN/session-"},
	{regexp.MustCompile(` sandbox="(kernel|direct)">`), ` sandbox="$$MODE">`},
}

func mask(text string) string {
	for _, m := range masks {
		text = m.what.ReplaceAllString(text, m.by)
	}
	return text
}

// consistent checks what holds for every result: structuredContent, where there
// is one, is the object of the first text block.
func consistent(r *mcp.CallToolResult) error {
	structured := r.RawStructuredContent
	if structured == nil || len(r.Content) == 0 {
		return nil
	}
	text, ok := r.Content[0].(mcp.TextContent)
	var want, got bytes.Buffer
	if !ok || json.Compact(&want, []byte(text.Text)) != nil || json.Compact(&got, structured) != nil {
		return fmt.Errorf("structuredContent without JSON text beside it")
	}
	if object := (map[string]json.RawMessage{}); bytes.HasPrefix(want.Bytes(), []byte("[")) && json.Unmarshal(got.Bytes(), &object) == nil && len(object) == 1 {
		for _, list := range object { // a bare list as text
			got = *bytes.NewBuffer(list)
		}
	}
	var a, b any
	if json.Unmarshal(want.Bytes(), &a) != nil || json.Unmarshal(got.Bytes(), &b) != nil || fmt.Sprint(a) != fmt.Sprint(b) {
		return fmt.Errorf("structuredContent %s differs from the text %s", got.Bytes(), want.Bytes())
	}
	return nil
}

// render shows the blocks of a result, each ended by a line feed.
func render(r *mcp.CallToolResult) string {
	var b strings.Builder
	for i, content := range r.Content {
		if i > 0 {
			fmt.Fprintf(&b, "(block %d)\n", i+1)
		}
		switch c := content.(type) {
		case mcp.TextContent:
			b.WriteString(c.Text)
		case mcp.ImageContent:
			fmt.Fprintf(&b, "(image %s, %d bytes of base64)", c.MIMEType, len(c.Data))
		default:
			fmt.Fprintf(&b, "(%T)", content)
		}
		b.WriteString("\n")
	}
	return b.String()
}
