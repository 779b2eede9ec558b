package skill

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/sandbox/files"
	"github.com/perstack-ai/perstack-base/sandbox/scratch"
	"github.com/perstack-ai/perstack-base/skillrepo"
)

// An Input is something to be put into the run workspace before a command runs.
type Input struct {
	From string `json:"from" minLength:"1" nul:"no" doc:"artifact://NAME[@VERSION], host:///ABSOLUTE/PATH, workspace://PATH of the run workspace, or skill://NAME/PATH."`
	To   string `json:"to,omitempty" nul:"no" doc:"Where to, below work or out; default work/inputs/NAME."`
	Mode string `json:"mode,omitempty" doc:"copy (default) or link."`
}

// maxInputBytes bounds all inputs of one call together.
const maxInputBytes = 256 << 20

// A source is what an input leads to: one file, or a tree of them.
type source struct {
	name  string // the default name in work/inputs
	real  string // where a link leads, "" when it must be copied
	dirs  []string
	files []sourceFile
	tree  bool
	close func() // may be nil
}

func (src *source) end() {
	if src.close != nil {
		src.close()
	}
}

type sourceFile struct {
	rel  string // "" for a single file
	mode fs.FileMode
	open func() (io.ReadCloser, error)
}

// check refuses what can be refused before anything is looked at.
func (in Input) check() error {
	switch in.mode() {
	case "", "copy", "link":
	default:
		return errorf(fault.BadInput, "mode of an input must be copy or link, not %s", in.Mode)
	}
	scheme, rest, ok := strings.Cut(in.From, "://")
	if !ok || !slices.Contains([]string{"artifact", "host", "workspace", "skill"}, scheme) || rest == "" && scheme != "workspace" {
		return errorf(fault.BadInput, "unsupported input: %s", in.From)
	}
	if scheme == "host" && !filepath.IsAbs(filepath.FromSlash(rest)) {
		return errorf(fault.BadInput, "host:// takes an absolute path: %s", in.From)
	}
	return nil
}

func (in Input) mode() string { return strings.ToLower(strings.TrimSpace(in.Mode)) }

// stageInputs puts every input into the run workspace, in order.
func (s *Session) stageInputs(ctx context.Context, w *runWorkspace, inputs []Input) (err error) {
	if len(inputs) == 0 {
		return nil
	}
	ctx, span := begin(ctx, spanInputs)
	left := int64(maxInputBytes)
	defer func() {
		span.bytes = maxInputBytes - left
		span.counted(err)
	}()
	for _, in := range inputs {
		src, err := s.source(ctx, w, in.From)
		if err != nil {
			return err
		}
		span.files += int64(len(src.files))
		left, err = w.put(ctx, in, src, left)
		src.end()
		if large := new(sandbox.TooLargeError); errors.As(err, &large) {
			return errorf(fault.TooLarge, "inputs have more than the %d bytes allowed together: %s", maxInputBytes, in.From)
		}
		if err != nil {
			if exact := new(Error); errors.As(err, &exact) || ctx.Err() != nil {
				return err
			}
			return errorf(fault.Unavailable, "input %s cannot be staged: %v", in.From, bare(err))
		}
	}
	return nil
}

// put copies or links one input and returns how many bytes may still come.
func (w *runWorkspace) put(ctx context.Context, in Input, src *source, left int64) (int64, error) {
	to, err := w.destination(in, src)
	if err != nil {
		return left, err
	}
	if in.mode() != "link" || src.real == "" {
		return w.place(ctx, src, to, left)
	}
	if err := w.dir.Mkdir(path.Dir(to)); err != nil {
		return left, err
	}
	return left, w.dir.Link(src.real, to)
}

// bare is an error without the operation and path it came with.
func bare(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

func (s *Session) source(ctx context.Context, w *runWorkspace, from string) (*source, error) {
	scheme, rest, _ := strings.Cut(from, "://")
	switch scheme {
	case "artifact":
		return s.artifactSource(rest)
	case "host":
		return s.hostSource(from, rest)
	case "workspace":
		return treeSource(w.dir.FS, from, orHere(rest))
	}
	return s.skillSource(ctx, w, from, rest)
}

var versioned = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(.+)@([0-9]{1,9})$`) })

// cutVersion splits NAME@N; -1 means the latest.
func cutVersion(name string) (string, int) {
	if m := versioned().FindStringSubmatch(name); m != nil {
		n, _ := strconv.Atoi(m[2])
		return m[1], n
	}
	return name, -1
}

func (s *Session) artifactSource(ref string) (*source, error) {
	name, version := cutVersion(ref)
	store := s.engine.Workdirs.Artifacts()
	file, _, err := store.Open(name, version)
	if err != nil {
		return nil, errorf(fault.NotFound, "artifact not found: %s", ref)
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(file), nil }
	return &source{name: path.Base(name), files: []sourceFile{{mode: 0o644, open: open}}, close: func() { file.Close() }}, nil
}

// hostSource takes a path of the workspace, or of what --allow-read names.
func (s *Session) hostSource(from, p string) (*source, error) {
	src, err := treeSource(s.engine.Files, from, filepath.FromSlash(p))
	if err == nil || fault.Of(err) != fault.OutsideWorkspace {
		return src, err
	}
	for _, root := range s.engine.AllowRead {
		files, name, open := files.OpenBelow(root, filepath.FromSlash(p))
		if open != nil {
			continue
		}
		src, err := treeSource(files, from, name)
		if err != nil {
			files.Close()
			return nil, err
		}
		src.close = func() { files.Close() }
		return src, nil
	}
	return nil, &Error{Kind: fault.OutsideWorkspace, Msg: from + " is outside the workspace", Way: "Start the server with --allow-read DIR to let inputs come from there."}
}

// treeSource is a file or a directory of fsys.
func treeSource(fsys *files.FS, from, name string) (*source, error) {
	at, err := fsys.Resolve(name)
	switch {
	case errors.Is(err, sandbox.ErrEscapes), errors.Is(err, sandbox.ErrReserved):
		return nil, errorf(fault.OutsideWorkspace, "input leads outside: %s", from)
	case errors.Is(err, fs.ErrNotExist), err == nil && !at.Exists:
		return nil, errorf(fault.NotFound, "input not found: %s", from)
	case err != nil:
		return nil, errorf(fault.BadInput, "unsupported input: %s", from)
	}
	src := &source{name: path.Base(filepath.ToSlash(at.Abs)), real: at.Abs, tree: at.IsDir()}
	if !src.tree {
		if at.Type != 0 {
			return nil, errorf(fault.UnsupportedType, "not a regular file or directory: %s", from)
		}
		info, err := fsys.Stat(at.Rel)
		if err != nil {
			return nil, errorf(fault.NotFound, "input not found: %s", from)
		}
		src.files = []sourceFile{{mode: info.Mode(), open: func() (io.ReadCloser, error) { return fsys.Open(at.Rel) }}}
		return src, nil
	}
	return src, src.walk(fsys, at.Rel, "")
}

// maxTreeEntries bounds a directory that is an input or searched for outputs.
const maxTreeEntries = 50_000

// walk adds what is below dir. Links and special files in it are left out.
func (src *source) walk(fsys *files.FS, top, rel string) error {
	entries, err := fsys.ReadDir(path.Join(top, rel))
	if err != nil {
		return err
	}
	for _, e := range entries {
		at := path.Join(rel, e.Name())
		switch {
		case len(src.files)+len(src.dirs) >= maxTreeEntries:
			return errorf(fault.TooLarge, "the directory has more than %d entries", maxTreeEntries)
		case e.IsDir():
			src.dirs = append(src.dirs, at)
			if err := src.walk(fsys, top, at); err != nil {
				return err
			}
		case e.Type().IsRegular():
			info, err := e.Info()
			if err != nil {
				continue // it vanished meanwhile
			}
			src.files = append(src.files, sourceFile{rel: at, mode: info.Mode(), open: func() (io.ReadCloser, error) { return fsys.Open(path.Join(top, at)) }})
		}
	}
	return nil
}

// spellings are what a part of a URI may mean: written as it is or percent-encoded.
func spellings(s string) []string {
	if decoded, err := url.PathUnescape(s); err == nil && decoded != s {
		return []string{s, decoded}
	}
	return []string{s}
}

// skillSource is a file or a directory of a known skill.
func (s *Session) skillSource(ctx context.Context, w *runWorkspace, from, rest string) (*source, error) {
	name, rel, _ := strings.Cut(rest, "/")
	var sk *skillrepo.Skill
	var err error
	for _, name := range spellings(name) {
		if sk, err = s.engine.find(ctx, name); err == nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	list, err := sk.Files(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range spellings(rel) {
		p = path.Clean(strings.ReplaceAll(p, `\`, "/"))
		if p == ".." || strings.HasPrefix(p, "../") || path.IsAbs(p) {
			return nil, errorf(fault.OutsideWorkspace, "%s leads outside the skill", from)
		}
		if src := s.skillFiles(sk, list, p); src != nil {
			return src, nil
		}
	}
	return nil, errorf(fault.NotFound, "input not found: %s", from)
}

// skillFiles is the file or directory p of a skill, nil when it has none.
func (s *Session) skillFiles(sk *skillrepo.Skill, list *skillrepo.Listing, p string) *source {
	src := &source{name: path.Base(p), real: filepath.Join(sk.RealDir, filepath.FromSlash(p))}
	if p == "." {
		src.name = sk.Name
	}
	add := func(f skillrepo.File, rel string) {
		src.files = append(src.files, sourceFile{rel: rel, mode: f.Mode, open: func() (io.ReadCloser, error) { return sk.Open(f) }})
	}
	if i := indexOf(list.Files, p); i >= 0 {
		add(list.Files[i], "")
		return src
	}
	src.tree = p == "." || slices.Contains(list.Dirs, p)
	prefix := p + "/"
	if p == "." {
		prefix = ""
	}
	for _, d := range list.Dirs {
		if in, ok := strings.CutPrefix(d, prefix); ok && in != "" {
			src.dirs = append(src.dirs, in)
		}
	}
	for _, f := range list.Files {
		if in, ok := strings.CutPrefix(f.Path, prefix); ok && src.tree {
			add(f, in)
		}
	}
	if !src.tree {
		return nil
	}
	return src
}

// destination finds where an input goes: below work or out.
func (w *runWorkspace) destination(in Input, src *source) (string, error) {
	to := strings.ReplaceAll(strings.TrimSpace(in.To), `\`, "/")
	if to == "" || path.Clean(to) == "." {
		to = inputsDir + "/" + src.name
	}
	if name, rest, ok := cutVariable(to); ok {
		base, known := places(".", ".")[name]
		if !known || name == "SKILL_DIR" || name == "RUN_DIR" {
			return "", errorf(fault.BadInput, "to begins with an unknown variable: %s", in.To)
		}
		to = base + "/" + rest
	}
	if scratch.Below(strings.TrimPrefix(to, "./"), "inputs") {
		to = workDir + "/" + strings.TrimPrefix(to, "./")
	}
	into := strings.HasSuffix(to, "/")
	at, err := w.dir.Resolve(to)
	if err != nil && !errors.Is(err, sandbox.ErrEscapes) {
		return "", errorf(fault.BadInput, "to is not usable: %s", in.To)
	}
	if err != nil {
		return "", errorf(fault.OutsideWorkspace, "to leads outside the run workspace: %s", in.To)
	}
	if !inOne(at.Rel, []string{workDir, outDir}) {
		return "", errorf(fault.BadInput, "to must be below work or out: %s", in.To)
	}
	if into || at.IsDir() {
		return path.Join(at.Rel, src.name), nil
	}
	return at.Rel, nil
}

// place copies a source to a place of the run workspace, beside it first. It
// returns how many bytes may still come.
func (w *runWorkspace) place(ctx context.Context, src *source, to string, left int64) (int64, error) {
	if err := w.dir.Mkdir(path.Dir(to)); err != nil {
		return left, err
	}
	tmp := w.dir.Temp(path.Dir(to))
	left, err := w.fill(ctx, src, tmp, left)
	if err == nil {
		err = w.dir.Rename(tmp, to)
	}
	if err != nil {
		_ = w.dir.Remove(tmp)
	}
	return left, err
}

func (w *runWorkspace) fill(ctx context.Context, src *source, tmp string, left int64) (int64, error) {
	if src.tree {
		for _, d := range append([]string{"."}, src.dirs...) {
			if err := w.dir.Mkdir(path.Join(tmp, d)); err != nil {
				return left, err
			}
		}
	}
	for _, f := range src.files {
		if ctx.Err() != nil {
			return left, ctx.Err()
		}
		file, err := f.open()
		if err != nil {
			return left, err
		}
		n, err := w.dir.Create(path.Join(tmp, f.rel), 0o600|f.mode.Perm()&0o755, file, left)
		file.Close()
		if err != nil {
			return left, err
		}
		left -= n
	}
	return left, nil
}
