package front

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"
)

const (
	maxAliasNodes = 10_000  // nodes that aliases may stand for, in all
	maxAliasBytes = 1 << 20 // and the text in them: a few bytes can name a long one
	maxDepth      = 200     // nesting that readers of the JSON form can take
)

// A Mapping is the front matter as a plain tree: no aliases, string keys, each once.
type Mapping struct {
	Node   *yaml.Node
	Mended bool // it took the quote-retry or dropping duplicate keys to read it
}

// ParseMapping reads front matter leniently.
func ParseMapping(text string, warn Warn) (Mapping, error) {
	var m Mapping
	root, more, err := Parse(text)
	if err != nil {
		var retryErr error
		if root, more, retryErr = Parse(quoteValues(text)); retryErr != nil {
			return m, fmt.Errorf("the frontmatter is not valid YAML: %w", err)
		}
		warn("the frontmatter is valid YAML only with some values quoted: %v", err)
		m.Mended = true
	}
	if more {
		warn("the frontmatter holds more than one YAML document; only the first counts")
		m.Mended = true
	}
	if root == nil || root.Kind != yaml.MappingNode {
		return m, errors.New("the frontmatter is not a YAML mapping")
	}
	p := plainer{nodes: maxAliasNodes, bytes: maxAliasBytes}
	if m.Node, err = p.plain(root, 0, false); err != nil {
		return m, err
	}
	for _, key := range p.repeated {
		warn("the frontmatter has the key %q more than once; the last one counts", key)
		m.Mended = true
	}
	return m, nil
}

// Parse returns the root node of the first document, nil when there is none.
func Parse(text string) (root *yaml.Node, more bool, err error) {
	defer func() {
		// The parser reports most trouble as errors; what it panics with is trouble too.
		if r := recover(); r != nil {
			root, err = nil, fmt.Errorf("unreadable: %v", r)
		}
	}()
	dec := yaml.NewDecoder(strings.NewReader(text))
	var doc, rest yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, false, nil
	case err != nil:
		return nil, false, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	more = !errors.Is(dec.Decode(&rest), io.EOF)
	if len(doc.Content) == 0 {
		return nil, more, nil
	}
	return doc.Content[0], more, nil
}

var keyLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([A-Za-z_][\w.-]*:[ \t]+)([^\s"'|>].*)$`) })

// quoteValues double-quotes the value of every unindented line that is not YAML
// by itself, so that "description: Use when: asked" can be read.
func quoteValues(text string) string {
	lines := strings.Split(text, "\n")
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	for i, line := range lines {
		m := keyLine().FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if _, _, err := Parse(line); err != nil {
			lines[i] = m[1] + `"` + escape.Replace(strings.TrimRight(m[2], " \t")) + `"`
		}
	}
	return strings.Join(lines, "\n")
}

// A plainer copies a YAML tree without aliases and repeated keys.
type plainer struct {
	nodes    int // that aliases may still stand for
	bytes    int
	repeated []string
}

func (p *plainer) plain(n *yaml.Node, depth int, aliased bool) (*yaml.Node, error) {
	if n.Kind == yaml.AliasNode {
		n, aliased = n.Alias, true
	}
	if aliased {
		p.nodes, p.bytes = p.nodes-1, p.bytes-len(n.Value)
		if p.nodes < 0 || p.bytes < 0 {
			return nil, fmt.Errorf("the aliases of the frontmatter stand for more than %d nodes or %d bytes", maxAliasNodes, maxAliasBytes)
		}
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("the frontmatter is nested more than %d levels deep", maxDepth)
	}
	out := &yaml.Node{Kind: n.Kind, Value: n.Value, Style: n.Style &^ yaml.TaggedStyle}
	for _, child := range n.Content {
		c, err := p.plain(child, depth+1, aliased)
		if err != nil {
			return nil, err
		}
		out.Content = append(out.Content, c)
	}
	if out.Kind == yaml.MappingNode {
		p.unique(out)
	}
	return out, nil
}

// unique gives a mapping text keys, each once: the last value at the first place.
func (p *plainer) unique(m *yaml.Node) {
	at := make(map[string]int, len(m.Content)/2)
	kept := m.Content[:0]
	for i := 0; i+1 < len(m.Content); i += 2 {
		key, val := m.Content[i], m.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			key = &yaml.Node{Kind: yaml.ScalarNode, Style: yaml.DoubleQuotedStyle, Value: string(AppendJSON(nil, key))}
		}
		if j, ok := at[key.Value]; ok {
			p.repeated = append(p.repeated, key.Value)
			kept[j+1] = val
			continue
		}
		at[key.Value] = len(kept)
		kept = append(kept, key, val)
	}
	m.Content = kept
}

// Get returns the value of a key, nil without one.
func Get(m *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return m.Content[i+1]
		}
	}
	return nil
}

// Pairs visits the keys and values of a mapping as written.
func Pairs(m *yaml.Node) func(yield func(string, *yaml.Node) bool) {
	return func(yield func(string, *yaml.Node) bool) {
		for i := 0; i+1 < len(m.Content); i += 2 {
			if !yield(m.Content[i].Value, m.Content[i+1]) {
				return
			}
		}
	}
}

// Refused finds what strict YAML does not allow, nil for nothing.
func Refused(n *yaml.Node, depth int) error {
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
		if err := Refused(c, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// Text is a scalar's text, trimmed; ok is false for anything but a scalar.
func Text(v *yaml.Node) (s string, ok bool) {
	if v == nil || v.Kind != yaml.ScalarNode {
		return "", false
	}
	return strings.TrimSpace(v.Value), true
}
