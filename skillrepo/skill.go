package skillrepo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"
	"unicode/utf8"

	"github.com/perstack-ai/perstack-base/skillrepo/internal/front"
	"github.com/perstack-ai/perstack-base/skillrepo/internal/signature"
)

// A Skill is one loaded skill. Its fields are the front matter at the time of
// the scan and never change; its methods read the disk as it is.
type Skill struct {
	Name          string
	Description   string
	License       string
	Compatibility string
	AllowedTools  []string        // nil: no restriction
	Paths         []string        // patterns that guard activation; nil: none
	Shell         string          // bash or powershell
	Hooks         []HookGroup     // parsed for every skill; only trusted ones may run
	Frontmatter   json.RawMessage // an object with every key that the author wrote

	Dir         string       // absolute, as it was found
	RealDir     string       // absolute, links resolved
	Root        string       // the root it was found below, absolute
	Trusted     bool         // from a trusted root
	Diagnostics []Diagnostic // what is odd about its front matter

	tree    tree
	dirName string              // the last element of Dir
	real    string              // RealDir in the tree
	dirSig  signature.Signature // of that directory when it was found; its identity counts
	file    string              // how SKILL.md is spelled here
	target  string              // the file that it leads to, link-free, in the tree
	body    int                 // where the body begins in it
	instead string              // instructions of the older form, which stand for the body; "" without
	sig     signature.Signature
	loaded  time.Time // when the front matter was read
	globs   []*Glob
	strict  bool // its front matter needs no leniency of a reader
	hashes  *signature.Memory
}

// SkillFile is how the skill spells SKILL.md.
func (s *Skill) SkillFile() string { return s.file }

// headSize is what is read of a SKILL.md at first: nearly all front matter ends within it.
const headSize = 4 << 10

// load reads the skill's front matter and sets the fields that depend on it.
func (s *Skill) load() error {
	n := &notes{dir: s.Dir}
	switch {
	case s.file == "SKILL.md":
	case s.file == "skill.md":
		n.warn("the file is named skill.md; SKILL.md is the name that every host knows")
	default:
		n.warn("the file is named %s; SKILL.md is the name that every host knows", s.file)
	}
	fr, size, err := s.readFrame(n)
	if err != nil {
		return err
	}
	if body := size - int64(fr.Body); body > front.MaxBody {
		return fmt.Errorf("the body of SKILL.md has %d bytes; at most %d are allowed", body, front.MaxBody)
	}
	s.body = fr.Body
	m, err := front.ParseMapping(fr.YAML, n.warn)
	if err != nil {
		return err
	}
	if err := s.fill(m, n); err != nil {
		return err
	}
	warnComments(fr.YAML, m.Node, n)
	s.strict = s.strict && fr.Strict && s.file == "SKILL.md"
	s.Diagnostics = n.list
	return nil
}

// readFrame divides SKILL.md, reading no more of it than it takes.
func (s *Skill) readFrame(n *notes) (front.Frame, int64, error) {
	f, info, err := s.tree.openFile(s.target)
	if err != nil {
		return front.Frame{}, 0, plainError("SKILL.md cannot be read", err)
	}
	defer func() { _ = f.Close() }()
	s.sig, s.loaded = signature.Of(info), time.Now()
	head := make([]byte, 0, headSize)
	for {
		k, err := io.ReadFull(f, head[len(head):cap(head)])
		head = head[:len(head)+k]
		whole := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !whole {
			return front.Frame{}, 0, plainError("SKILL.md cannot be read", err)
		}
		try := &notes{dir: n.dir}
		fr, err := front.Divide(head, whole, try.warn)
		if err == nil || whole || cap(head) > headSize {
			n.list = append(n.list, try.list...)
			return fr, max(info.Size(), int64(len(head))), err
		}
		head = append(make([]byte, 0, 2*front.MaxFrontmatter), head...)
	}
}

// Body is the instructions: what follows the front matter, line ends as \n and
// invalid bytes as U+FFFD.
func (s *Skill) Body() (string, error) {
	raw, err := s.readTarget()
	if err != nil || s.instead != "" {
		return s.instead, err
	}
	fr, err := front.Divide(raw, true, new(notes).warn)
	if err != nil {
		return "", err
	}
	if len(raw)-fr.Body > front.MaxBody {
		return "", fmt.Errorf("the body of SKILL.md exceeds %d bytes", front.MaxBody)
	}
	return front.PlainText(raw[fr.Body:]), nil
}

// bodyDiagnostics is what is odd about the body, which loading does not read.
func (s *Skill) bodyDiagnostics() []Diagnostic {
	n := notes{dir: s.Dir}
	if raw, err := s.readTarget(); err == nil && !utf8.Valid(raw[min(len(raw), s.body):]) {
		n.warn("the body of SKILL.md is not valid UTF-8")
	}
	return n.list
}

// readTarget reads all of SKILL.md, up to the largest one that can be loaded.
func (s *Skill) readTarget() ([]byte, error) {
	if err := s.inPlace(); err != nil {
		return nil, err
	}
	return readPath(s.tree, s.target, 2*front.MaxFrontmatter+front.MaxBody)
}

// readPath reads the regular file at a link-free path.
func readPath(t tree, p string, limit int64) ([]byte, error) {
	f, _, err := t.openFile(p)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return readAtMost(f, limit)
}

// readAtMost reads all of a file, or fails when it has more than limit bytes.
func readAtMost(f fs.File, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("the file exceeds %d bytes", limit)
	}
	return b, err
}

// plainError words an error without the operation and the path it came with.
func plainError(what string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Errorf("%s: %w", what, err)
}

// unchanged reports whether SKILL.md, and the directory around it, is still what was loaded.
func (s *Skill) unchanged() bool {
	if !s.sig.Settled(s.loaded) || s.inPlace() != nil {
		return false
	}
	info, err := fs.Lstat(s.tree.fsys, s.target)
	return err == nil && s.sig == signature.Of(info)
}

// at reports whether the skill lies there.
func (s *Skill) at(real, file, target string) bool {
	return s.real == real && s.file == file && s.target == target
}
