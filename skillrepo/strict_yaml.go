package skillrepo

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// strictMapping reads the front matter as the reference does, in which it ends at
// the next --- wherever that stands. A problem stands for the mapping.
func strictMapping(t tree, file string) (m *yaml.Node, problem string) {
	raw, err := readPath(t, file, 2*MaxFrontmatter+MaxBody)
	if err != nil {
		return nil, plainError("SKILL.md cannot be read", err).Error()
	}
	if !utf8.Valid(raw) {
		return nil, "SKILL.md is not valid UTF-8"
	}
	rest, ok := strings.CutPrefix(string(toLF(raw)), "---")
	if !ok {
		return nil, "SKILL.md must start with YAML frontmatter (---)"
	}
	front, _, ok := strings.Cut(rest, "---")
	if !ok {
		return nil, "SKILL.md frontmatter not properly closed with ---"
	}
	root, more, err := parseYAML(front)
	if err == nil && more {
		err = errors.New("more than one document")
	}
	if err == nil {
		err = refused(root, 0)
	}
	if err != nil {
		return nil, "Invalid YAML in frontmatter: " + err.Error()
	}
	if root == nil || root.Kind != yaml.MappingNode {
		return nil, "SKILL.md frontmatter must be a YAML mapping"
	}
	return root, ""
}

// refused finds what strict YAML does not allow, nil for nothing.
func refused(n *yaml.Node, depth int) error {
	if n == nil {
		return nil
	}
	what := ""
	switch {
	case n.Kind == yaml.AliasNode:
		what = "an alias"
	case n.Anchor != "":
		what = "an anchor"
	case n.Style&yaml.TaggedStyle != 0:
		what = "a tag"
	case n.Style&yaml.FlowStyle != 0:
		what = "a flow list or mapping"
	case depth > maxDepth:
		what = "too deep nesting"
	}
	if what != "" {
		return fmt.Errorf("line %d: %s is not allowed", n.Line, what)
	}
	seen := map[string]bool{}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if seen[c.Value] || c.Kind != yaml.ScalarNode {
				return fmt.Errorf("line %d: the key %q is repeated or not text", c.Line, c.Value)
			}
			seen[c.Value] = true
		}
		if err := refused(c, depth+1); err != nil {
			return err
		}
	}
	return nil
}
