package skill

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
)

var variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{([A-Z_]+|[1-9][0-9]{0,5})\}`) })

// substitute writes text with the variables that a skill may use replaced. Values
// are not looked at again, and every other ${…} stays as written. It stops when
// the result is too large to be of use.
func (p *Page) substitute(b *strings.Builder, text string) {
	for b.Len() <= maxRendered {
		at := variable().FindStringSubmatchIndex(text)
		if at == nil {
			b.WriteString(text)
			return
		}
		b.WriteString(text[:at[0]])
		if value, ok := p.value(text[at[2]:at[3]]); ok {
			b.WriteString(value)
		} else {
			b.WriteString(text[at[0]:at[1]])
		}
		text = text[at[1]:]
	}
}

// value is what a variable stands for.
func (p *Page) value(name string) (string, bool) {
	switch name {
	case "SKILL_DIR", "CLAUDE_SKILL_DIR":
		return p.Dir, true
	case "SESSION_ID", "CLAUDE_SESSION_ID":
		return p.Session, true
	case "ARGUMENTS":
		return strings.Join(p.Arguments, " "), true
	}
	if i, err := strconv.Atoi(name); err == nil && i <= len(p.Arguments) {
		return p.Arguments[i-1], true
	}
	return "", false
}
