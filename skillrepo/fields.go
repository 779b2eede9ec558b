package skillrepo

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"gopkg.in/yaml.v3"

	"github.com/perstack-ai/perstack-base/skillrepo/internal/front"
)

// Bounds of the published format, in code points, and of our names, in bytes.
const (
	maxName        = 64
	maxNameBytes   = 200
	maxDescription = 1024
)

// fill sets the skill's fields from its front matter, leniently.
func (s *Skill) fill(m front.Mapping, n *notes) error {
	if err := s.fillName(front.Get(m.Node, "name"), n); err != nil {
		return err
	}
	if err := s.fillDescription(front.Get(m.Node, "description"), n); err != nil {
		return err
	}
	s.License = optionalText(m.Node, "license", n)
	s.Compatibility = optionalText(m.Node, "compatibility", n)
	if v := front.Get(m.Node, "metadata"); v != nil && v.Kind != yaml.MappingNode {
		n.warn("metadata is not a mapping and is ignored")
	}
	s.AllowedTools = itemList(m.Node, "allowed-tools", "()", n)
	if v := front.Get(m.Node, "allowed-tools"); v != nil && len(s.AllowedTools) == 0 {
		n.warn("allowed-tools is empty and restricts nothing")
	}
	s.fillPaths(m.Node, n)
	s.fillOlder(m.Node, n)
	s.Shell = shellField(front.Get(m.Node, "shell"), "bash", n)
	s.Hooks = parseHooks(front.Get(m.Node, "hooks"), s.Shell, n)
	s.Frontmatter = front.AppendJSON(nil, m.Node)
	s.strict = !m.Mended && s.strictFields(m.Node)
	return nil
}

func (s *Skill) fillName(v *yaml.Node, n *notes) error {
	name, given := front.Text(v)
	if given {
		name = norm.NFKC.String(name)
	}
	if name == "" {
		name = norm.NFKC.String(s.dirName)
		n.warn("name is missing; the directory's name %q is used", name)
	}
	if err := checkName(name); err != nil {
		return err
	}
	for _, msg := range nameErrors(name, s.dirName) {
		n.warn("%s", msg)
	}
	s.Name = name
	return nil
}

// checkName refuses what cannot be one element of a path or one line of text.
func checkName(name string) error {
	switch {
	case len(name) > maxNameBytes:
		return fmt.Errorf("the name has %d bytes; at most %d are allowed", len(name), maxNameBytes)
	case name == "." || name == "..":
		return fmt.Errorf("the name %q is not allowed", name)
	case strings.ContainsAny(name, `/\`) || strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("the name %q holds a slash, a backslash or a control character", name)
	}
	return nil
}

// nameErrors are the published rules that a normalised name breaks, in their words and order.
func nameErrors(name, dir string) (errs []string) {
	add := func(broken bool, format string, args ...any) {
		if broken {
			errs = append(errs, fmt.Sprintf(format, args...))
		}
	}
	k := utf8.RuneCountInString(name)
	invalid := func(r rune) bool { return r != '-' && !unicode.IsLetter(r) && !unicode.IsNumber(r) }
	add(k > maxName, "Skill name '%s' exceeds %d character limit (%d chars)", name, maxName, k)
	add(name != strings.ToLower(name), "Skill name '%s' must be lowercase", name)
	add(strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-"), "Skill name cannot start or end with a hyphen")
	add(strings.Contains(name, "--"), "Skill name cannot contain consecutive hyphens")
	add(strings.ContainsFunc(name, invalid),
		"Skill name '%s' contains invalid characters. Only letters, digits, and hyphens are allowed.", name)
	add(norm.NFKC.String(dir) != name, "Directory name '%s' must match skill name '%s'", dir, name)
	return errs
}

func (s *Skill) fillDescription(v *yaml.Node, n *notes) error {
	var ok bool
	switch s.Description, ok = front.Text(v); {
	case v == nil:
		return errors.New("description is missing")
	case !ok:
		return errors.New("description is not text")
	case s.Description == "":
		return errors.New("description is empty")
	}
	if k := utf8.RuneCountInString(s.Description); k > maxDescription {
		n.warn("description has %d characters; strict hosts take at most %d", k, maxDescription)
	}
	return nil
}

func (s *Skill) fillPaths(m *yaml.Node, n *notes) {
	for _, p := range itemList(m, "paths", "{}[]", n) {
		if strings.Contains(p, "..") {
			n.warn("the pattern %q in paths holds .. and is dropped", p)
			continue
		}
		g, err := CompileGlob(strings.TrimPrefix(p, "./"))
		if err != nil {
			n.warn("the pattern %q in paths is dropped: %v", p, err)
			continue
		}
		s.Paths = append(s.Paths, p)
		s.globs = append(s.globs, g)
	}
}

// fillOlder takes the form of older skills, in which the frontmatter holds the
// instructions and lists the resources.
func (s *Skill) fillOlder(m *yaml.Node, n *notes) {
	if v := front.Get(m, "instructions"); v != nil {
		if s.instead, _ = front.Text(v); s.instead != "" {
			n.warn("instructions in the frontmatter are an older form; they are used, and what follows the frontmatter is not")
		} else {
			n.warn("instructions in the frontmatter are not text, or empty, and are ignored")
		}
	}
	if front.Get(m, "resources") != nil {
		n.warn("resources in the frontmatter is an older form and not needed: every file of the skill is a resource")
	}
}

// commented is an unquoted value on one line that a comment follows.
var commented = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^([A-Za-z_][\w.-]*):[ \t]+([^\s"'|>#&*!\[{%@` + "`" + `][^\n]*?)[ \t]+(#[^\n]*)$`)
})

// warnComments tells of a # in a plain name or description: what follows it is a
// comment, which hardly anybody meant.
func warnComments(text string, m *yaml.Node, n *notes) {
	for _, found := range commented().FindAllStringSubmatch(text, -1) {
		key, value, rest := found[1], found[2], found[3]
		if v := front.Get(m, key); (key == "name" || key == "description") && v != nil && v.Style == 0 && v.Value == value {
			n.warn("%s ends before %q: in YAML, a # after a blank begins a comment; put the value in quotes", key, clipped(rest))
		}
	}
}

// clipped is text of which a diagnostic quotes the beginning.
func clipped(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}

var strictName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`) })

// strictFields reports whether a strict reader of the JSON form accepts name and description.
func (s *Skill) strictFields(m *yaml.Node) bool {
	name, desc := front.Get(m, "name"), front.Get(m, "description")
	return front.IsString(name) && name.Value == s.Name && strictName().MatchString(s.Name) && len(s.Name) <= maxName &&
		front.IsString(desc) && utf8.RuneCountInString(desc.Value) <= maxDescription
}

func optionalText(m *yaml.Node, key string, n *notes) string {
	v := front.Get(m, key)
	s, ok := front.Text(v)
	if v != nil && !ok {
		n.warn("%s is not text and is ignored", key)
	}
	return s
}

func shellField(v *yaml.Node, def string, n *notes) string {
	if v == nil {
		return def
	}
	if s, _ := front.Text(v); s == "bash" || s == "powershell" {
		return s
	}
	n.warn("shell is neither bash nor powershell; bash is used")
	return "bash"
}

// itemList reads a list of scalars, or a string split at commas and blanks
// outside the given brackets. Empty items are dropped.
func itemList(m *yaml.Node, key, brackets string, n *notes) (items []string) {
	v := front.Get(m, key)
	switch {
	case v == nil || front.IsNull(v):
		return nil
	case v.Kind == yaml.ScalarNode:
		return splitItems(v.Value, brackets)
	case v.Kind != yaml.SequenceNode:
		n.warn("%s is neither a list nor text and is ignored", key)
		return nil
	}
	for _, c := range v.Content {
		s, ok := front.Text(c)
		if !ok {
			n.warn("an item of %s is not text and is ignored", key)
		}
		if s != "" && !front.IsNull(c) {
			items = append(items, s)
		}
	}
	return items
}

// splitItems splits at commas and white space outside brackets, which are pairs
// of an opening and a closing one. A bracket left open takes the rest.
func splitItems(s, brackets string) (items []string) {
	depth := 0
	fields := strings.FieldsFunc(s, func(r rune) bool {
		switch i := strings.IndexRune(brackets, r); {
		case i >= 0 && i%2 == 0:
			depth++
		case i >= 0 && depth > 0:
			depth--
		}
		return depth == 0 && (r == ',' || unicode.IsSpace(r))
	})
	for _, f := range fields {
		if f = strings.TrimSpace(f); f != "" {
			items = append(items, f)
		}
	}
	return items
}
