package skill

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/skillrepo"
	"github.com/perstack-ai/perstack-base/tools/internal/media"
	"github.com/perstack-ai/perstack-base/tools/internal/outcut"
)

// Outputs say which files to report after a run, and what to do with them.
type Outputs struct {
	Globs         []string `json:"globs,omitempty" nul:"no" doc:"Patterns of files, as in out/**."`
	Inline        bool     `json:"inline,omitempty" doc:"Whether to return the contents."`
	Save          bool     `json:"save,omitempty" doc:"Whether to keep the files as artifacts."`
	NameTemplate  string   `json:"name_template,omitempty" doc:"Put before the names of artifacts."`
	MaxFiles      int64    `json:"max_files" default:"100" min:"1" max:"1000" doc:"How many files at most."`
	MaxFileBytes  int64    `json:"max_file_bytes" default:"4194304" min:"1" max:"67108864" doc:"Bytes of one file."`
	MaxTotalBytes int64    `json:"max_total_bytes" default:"67108864" min:"1" max:"268435456" doc:"Bytes of all files together."`
}

// limits of output_files, which are those of Outputs when they say nothing.
var defaultOutputs = Outputs{MaxFiles: 100, MaxFileBytes: 4 << 20, MaxTotalBytes: 64 << 20}

// An OutputFile is one file that a pattern found.
type OutputFile struct {
	Name      string `json:"name" doc:"Path from the top of the run workspace."`
	Content   string `json:"content,omitempty" doc:"Its text."`
	MIMEType  string `json:"mime_type" doc:"What it is, by content."`
	SizeBytes int64  `json:"size_bytes" doc:"Its size."`
	Truncated bool   `json:"truncated,omitempty" doc:"The content is only its beginning."`
	Ref       string `json:"ref" doc:"Its name as an input of a later call."`
}

// An ArtifactFile is one file that was saved.
type ArtifactFile struct {
	Name    string `json:"name" doc:"The name of the artifact."`
	Version int64  `json:"version" doc:"Its version, from 0."`
	URI     string `json:"uri" doc:"Its resource."`
}

// A pattern is a glob from the top of the run workspace.
type pattern struct {
	text  string
	start string // the directory that everything it matches lies below
	glob  *skillrepo.Glob
}

// compile reads a pattern; run is the directory of this run.
func compile(text, run string) (pattern, error) {
	p := strings.TrimPrefix(strings.TrimSpace(strings.ReplaceAll(text, `\`, "/")), "workspace://")
	if name, rest, ok := cutVariable(p); ok {
		base, known := places("", run)[name]
		if !known || name == "SKILL_DIR" {
			return pattern{}, errorf(fault.BadInput, "pattern begins with an unknown variable: %s", text)
		}
		p = base + "/" + rest
	} else if strings.HasPrefix(p, "$") {
		return pattern{}, errorf(fault.BadInput, "pattern begins with an unknown variable: %s", text)
	}
	for strings.HasPrefix(p, "./") || strings.HasPrefix(p, "/") {
		p = strings.TrimPrefix(strings.TrimLeft(p, "/"), "./")
	}
	segments := strings.Split(p, "/")
	if slices.Contains(segments, "..") {
		return pattern{}, errorf(fault.OutsideWorkspace, "pattern leads outside the run workspace: %s", text)
	}
	segments = slices.DeleteFunc(segments, func(s string) bool { return s == "." || s == "" })
	p = strings.Join(segments, "/")
	glob, err := skillrepo.CompileGlob(p)
	if err != nil {
		return pattern{}, errorf(fault.BadInput, "pattern is malformed: %s: %v", text, err)
	}
	n := 0
	for n < len(segments)-1 && !strings.ContainsAny(segments[n], "*?[{}]") {
		n++
	}
	return pattern{text: text, start: path.Join(".", strings.Join(segments[:n], "/")), glob: glob}, nil
}

func compileAll(texts []string, run string) ([]pattern, error) {
	var all []pattern
	for _, t := range texts {
		if t := strings.TrimSpace(t); t == "" || t == "." {
			continue // matches nothing
		}
		p, err := compile(t, run)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// A found file has its real place in the run workspace.
type found struct {
	rel  string
	info fs.FileInfo
}

// A collector looks for files after a run.
type collector struct {
	ctx      context.Context
	w        *runWorkspace
	seen     int // entries
	files    []found
	known    map[string]bool
	warnings []string        // at most maxWarnings
	warned   map[uint64]bool // all of them, by hash
	seed     maphash.Seed
	hits     map[string]bool // limits that were met
}

func newCollector(ctx context.Context, w *runWorkspace) *collector {
	return &collector{ctx: ctx, w: w, known: map[string]bool{}, hits: map[string]bool{}, warned: map[uint64]bool{}, seed: maphash.MakeSeed()}
}

// collect finds the files of the patterns, each once, by pattern and then name.
func (c *collector) collect(patterns []pattern, limits Outputs) []found {
	c.files, c.known = nil, map[string]bool{}
	var total int64
	var kept []found
	for _, p := range patterns {
		from := len(c.files)
		c.walk(p, p.start, p.start)
		slices.SortFunc(c.files[from:], func(a, b found) int { return cmp.Compare(a.rel, b.rel) })
	}
	for _, f := range c.files {
		switch {
		case int64(len(kept)) >= limits.MaxFiles:
			c.hits["max_files"] = true
			return kept
		case total+min(f.info.Size(), limits.MaxFileBytes) > limits.MaxTotalBytes:
			c.hits["max_total_bytes"] = true
			return kept
		}
		total += min(f.info.Size(), limits.MaxFileBytes)
		kept = append(kept, f)
	}
	return kept
}

// walk looks through the directory at, which the pattern knows by another name
// when links led there.
func (c *collector) walk(p pattern, at, name string) {
	if c.ctx.Err() != nil || c.seen > maxTreeEntries {
		return
	}
	entries, err := c.w.dir.ReadDir(at)
	if err != nil {
		if at != p.start {
			c.warn("%s was not searched", at)
		}
		return
	}
	for _, e := range entries {
		if c.seen++; c.seen > maxTreeEntries {
			c.warn("more than %d entries; the rest was not searched", maxTreeEntries)
			return
		}
		rel, named := path.Join(at, e.Name()), path.Join(name, e.Name())
		if e.IsDir() {
			c.walk(p, rel, named)
		} else if p.glob.Match(named) {
			c.add(rel)
		}
	}
}

// add takes what a pattern matched, if it is or leads to a regular file inside.
func (c *collector) add(rel string) {
	at, err := c.w.dir.Resolve(rel)
	switch {
	case err != nil:
		c.warn("%s was skipped: it leads outside the run workspace", rel)
		return
	case !at.Exists:
		c.warn("%s was skipped: it leads nowhere", rel)
		return
	case at.IsDir() || c.known[at.Rel]:
		return
	case at.Type != 0:
		c.warn("%s was skipped: it is not a regular file", rel)
		return
	}
	info, err := c.w.dir.Stat(at.Rel)
	if err != nil {
		return
	}
	c.known[at.Rel] = true
	c.files = append(c.files, found{at.Rel, info})
}

// Bounds of the warnings: what a command left behind decides how many there are
// and how long the names in them.
const (
	maxWarnings   = 20
	maxWarnedName = 200 // bytes
)

// warn notes something once.
func (c *collector) warn(format string, args ...any) {
	id := maphash.String(c.seed, fmt.Sprintf(format, args...))
	if c.warned[id] {
		return
	}
	if c.warned[id] = true; len(c.warned) > maxWarnings {
		return
	}
	for i, arg := range args {
		if name, ok := arg.(string); ok && len(name) > maxWarnedName {
			args[i] = outcut.Prefix(name, maxWarnedName) + "…"
		}
	}
	c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
}

// warningList is the warnings, the last of them how many are left out.
func (c *collector) warningList() []string {
	if more := len(c.warned) - len(c.warnings); more > 0 {
		return append(c.warnings, fmt.Sprintf("and %d more", more))
	}
	return c.warnings
}

// describe makes an OutputFile; room is how many bytes of content may be sent,
// negative for none wanted.
func (c *collector) describe(f found, limit int64, room int) (out OutputFile, used int) {
	out = OutputFile{Name: f.rel, SizeBytes: f.info.Size(), Ref: "workspace://" + f.rel, MIMEType: "application/octet-stream"}
	file, err := c.w.dir.Open(f.rel)
	if err != nil {
		c.warn("%s cannot be read", f.rel)
		return out, 0
	}
	defer file.Close()
	if t, err := media.Detect(file); err == nil {
		out.MIMEType = cmp.Or(string(t), "text/plain")
	}
	if out.SizeBytes > limit {
		out.Truncated = true
		c.hits["max_file_bytes"] = true
	}
	if room < 0 {
		return out, 0
	}
	// One character more than can be sent shows whether there is more.
	want := min(out.SizeBytes, limit)
	head := make([]byte, min(want, int64(room)+utf8.UTFMax))
	n, _ := file.ReadAt(head, 0)
	text, ok := textOf(head[:n], int64(n) < out.SizeBytes)
	if !ok {
		return out, 0
	}
	if len(text) > room || int64(n) < want {
		text = outcut.Prefix(text, room)
		out.Truncated = true
		c.hits["max_output"] = true
	}
	out.Content = text
	return out, len(text)
}

// textOf is b as text, when it is: valid UTF-8 without NUL. A character that is
// cut off at the end is left out.
func textOf(b []byte, cut bool) (string, bool) {
	for i := 0; cut && i < utf8.UTFMax-1 && len(b) > 0 && !utf8.Valid(b[max(0, len(b)-utf8.UTFMax):]); i++ {
		if r, _ := utf8.DecodeLastRune(b); r != utf8.RuneError {
			break
		}
		b = b[:len(b)-1]
	}
	return string(b), utf8.Valid(b) && !slices.Contains(b, 0)
}

// save keeps a whole file as an artifact.
func (s *Session) save(c *collector, f found, name string, limit int64) (ArtifactFile, bool) {
	if f.info.Size() > limit {
		c.warn("%s was not saved: it has %d bytes, more than max_file_bytes", f.rel, f.info.Size())
		return ArtifactFile{}, false
	}
	if !goodName(name) {
		c.warn("%s was not saved: its name cannot be an artifact's", f.rel)
		return ArtifactFile{}, false
	}
	file, err := c.w.dir.Open(f.rel)
	if err != nil {
		c.warn("%s was not saved: it cannot be read", f.rel)
		return ArtifactFile{}, false
	}
	defer file.Close()
	version, err := s.engine.Workdirs.Artifacts().Save(name, file)
	if err != nil {
		c.warn("%s was not saved: %v", f.rel, bare(err))
		return ArtifactFile{}, false
	}
	return ArtifactFile{Name: name, Version: int64(version), URI: ArtifactURI(name, version)}, true
}

// maxArtifactName bounds the name of an artifact, in bytes.
const maxArtifactName = 512

// goodName reports whether a name can be an artifact's.
func goodName(name string) bool {
	bad := func(segment string) bool { return segment == "" || segment == "." || segment == ".." }
	return len(name) <= maxArtifactName && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl) &&
		!slices.ContainsFunc(strings.Split(name, "/"), bad)
}
