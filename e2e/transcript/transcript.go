// Package transcript reads and replays golden transcripts: files of calls and
// answers that show what each tool does and prove that it still does.
//
// A transcript is a txtar archive, testdata/transcripts/PROFILE/TOOL.txtar. The
// text on top says why. Then come the files of the workspace and the steps:
//
//	-- notes.txt --             a file
//	-- shot.png (base64) --     a file given in base64
//	-- locked.txt (0444) --     a file with a mode
//	-- out -> /etc --           a symbolic link
//	-- logs/ --                 a directory
//	-- skill NAME in DIR --     a sample skill of testdata/skills, below DIR
//	-- flags --                 flags of the server, one a line
//	-- session --               its steps need a session
//	-- call TOOL --             the arguments, as JSON
//	-- want -- / -- want error --   the answer's blocks
//
// In flags, arguments and answers $WORK stands for the workspace; what differs from
// run to run is masked in answers. Start with [Load] and [Script.Run].
package transcript

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"golang.org/x/tools/txtar"
)

// A Script is one transcript.
type Script struct {
	Path    string // of the file
	Profile string // from its folder
	Tool    string // from its name
	Flags   []string
	Session bool // its steps belong together: not for connections without a session
	Steps   []*Step

	archive *txtar.Archive
	files   []txtar.File
}

// A Step is one call and the answer it must get.
type Step struct {
	Tool      string
	Args      json.RawMessage
	Want      string
	WantError bool

	want *txtar.File // where the answer stands in the archive
}

// Load reads every transcript below dir. None at all is an error: a glob that
// matches nothing proves nothing.
func Load(dir string) ([]*Script, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*.txtar"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("no transcripts in %s (%v)", dir, err)
	}
	scripts := make([]*Script, len(paths))
	for i, path := range paths {
		if scripts[i], err = load(path); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return scripts, nil
}

func load(path string) (*Script, error) {
	archive, err := txtar.ParseFile(path)
	if err != nil {
		return nil, err
	}
	s := &Script{
		Path: path, archive: archive,
		Profile: filepath.Base(filepath.Dir(path)),
		Tool:    strings.TrimSuffix(filepath.Base(path), ".txtar"),
	}
	if strings.TrimSpace(string(archive.Comment)) == "" {
		return nil, fmt.Errorf("a transcript begins with the reason why it is there")
	}
	for i := range archive.Files {
		if err := s.add(&archive.Files[i]); err != nil {
			return nil, err
		}
	}
	if len(s.Steps) == 0 {
		return nil, fmt.Errorf("no call")
	}
	return s, nil
}

func (s *Script) add(f *txtar.File) error {
	if tool, ok := strings.CutPrefix(f.Name, "call "); ok {
		s.Steps = append(s.Steps, &Step{Tool: tool, Args: json.RawMessage(strings.TrimSpace(string(f.Data)))})
		return nil
	}
	switch f.Name {
	case "session":
		s.Session = true
	case "flags":
		s.Flags = strings.Fields(string(f.Data))
	case "want", "want error":
		if len(s.Steps) == 0 || s.Steps[len(s.Steps)-1].want != nil {
			return fmt.Errorf("%q without a call before it", f.Name)
		}
		step := s.Steps[len(s.Steps)-1]
		step.want, step.Want, step.WantError = f, string(f.Data), f.Name == "want error"
	default:
		s.files = append(s.files, *f)
	}
	return nil
}

var decorated = regexp.MustCompile(`^(.*) \((base64|0[0-7]{3})\)$`)

var sample = regexp.MustCompile(`^skill ([a-z-]+) in (\S+)$`)

// Arguments are the flags for a server of the workspace dir.
func (s *Script) Arguments(dir string) []string {
	args := make([]string, len(s.Flags))
	for i, f := range s.Flags {
		args[i] = strings.ReplaceAll(f, "$WORK", dir)
	}
	return args
}

// Setup writes the transcript's files into the workspace dir.
func (s *Script) Setup(dir string) error {
	for _, f := range s.files {
		if m := sample.FindStringSubmatch(f.Name); m != nil {
			from := filepath.Join(filepath.Dir(s.Path), "..", "..", "skills", m[1])
			if err := os.CopyFS(filepath.Join(dir, m[2], m[1]), os.DirFS(from)); err != nil {
				return fmt.Errorf("%s: %s: %w", s.Path, f.Name, err)
			}
			continue
		}
		if err := setup(dir, f); err != nil {
			return fmt.Errorf("%s: %s: %w", s.Path, f.Name, err)
		}
	}
	return nil
}

func setup(dir string, f txtar.File) error {
	name, data, mode := f.Name, f.Data, os.FileMode(0o644)
	link, target, isLink := strings.Cut(name, " -> ")
	if m := decorated.FindStringSubmatch(name); m != nil {
		name = m[1]
		if m[2] == "base64" {
			raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(data)), ""))
			if err != nil {
				return err
			}
			data = raw
		} else {
			n, _ := strconv.ParseUint(m[2], 8, 32)
			mode = os.FileMode(n)
		}
	}
	if isLink {
		name = link
	}
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	switch {
	case isLink:
		return os.Symlink(strings.ReplaceAll(target, "$WORK", dir), path)
	case strings.HasSuffix(name, "/"):
		return os.MkdirAll(path, 0o755)
	}
	if err := os.WriteFile(path, data, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

// Update puts the answers that the steps got into the file.
func (s *Script) Update(answers []Answer) error {
	files := s.archive.Files[:0:0]
	at := 0
	for _, f := range s.archive.Files {
		if f.Name == "want" || f.Name == "want error" {
			continue
		}
		files = append(files, f)
		if strings.HasPrefix(f.Name, "call ") {
			files = append(files, answers[at].file())
			at++
		}
	}
	s.archive.Files = files
	return os.WriteFile(s.Path, txtar.Format(s.archive), 0o644)
}

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
