package settings

import (
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/internal/lazyregexp"
)

// cargoTables have no secrets but those that their names and values tell; [env] has.
var cargoTables = list{known: "alias build cache cargo-new doc future-incompat-report http install net patch paths profile registries registry resolver source target term unstable"}

var (
	cargoHeader = lazyregexp.New(`^\[\[?\s*["']?([\w-]+)["']?\s*[.\]]`)
	cargoKey    = lazyregexp.New(`^["']?([\w-]+)["']?\s*[.=]`)
)

// A cargoTable is where a line stands: at the top of the file, or below a header.
type cargoTable struct{ below, keep bool }

// keeps reports whether a statement is copied, and goes where a header leads.
func (t *cargoTable) keeps(statement string) bool {
	clean := !secretText(strings.ReplaceAll(statement, "\r\n", "\n")) && !strings.Contains(statement, `\`)
	switch {
	case strings.HasPrefix(statement, "["):
		*t = cargoTable{below: true, keep: clean && inCargoTables(cargoHeader, statement)}
		return t.keep
	case t.below:
		return clean && t.keep
	default:
		return clean && inCargoTables(cargoKey, statement)
	}
}

func inCargoTables(first *lazyregexp.Regexp, statement string) bool {
	m := first.FindStringSubmatch(statement)
	return m != nil && cargoTables.has(m[1])
}

// Cargo copies a config.toml: the tables that are known, without the settings in them
// that look like a secret. What is commented out is treated as if it were not. A file
// with strings of several lines is not taken apart and not copied.
func Cargo(text string) (copied string, left []string) {
	if strings.Contains(text, `"""`) || strings.Contains(text, "'''") {
		return "", []string{"everything"}
	}
	var out strings.Builder
	var live, commented cargoTable
	for text != "" {
		statement, ok := cargoStatement(text)
		if !ok {
			return out.String(), append(left, "what follows a line that is not understood")
		}
		text = text[len(statement):]
		trimmed := strings.TrimSpace(statement)
		if body, ok := strings.CutPrefix(trimmed, "#"); ok {
			body = strings.TrimSpace(strings.TrimLeft(body, "#"))
			prose := !strings.Contains(body, "=") && !strings.HasPrefix(body, "[")
			if prose && (live.keep || !live.below) && !secretText(body) || !prose && commented.keeps(body) {
				out.WriteString(statement)
			}
			continue
		}
		if trimmed == "" || live.keeps(trimmed) {
			out.WriteString(statement)
		} else {
			name, _, _ := setting(trimmed, "=")
			if strings.HasPrefix(trimmed, "[") {
				name = trimmed
			}
			left = append(left, shown(name))
		}
		if strings.HasPrefix(trimmed, "[") {
			commented = live
		}
	}
	return out.String(), left
}

// cargoStatement is what text begins with: a line, or the lines of an array.
func cargoStatement(text string) (statement string, ok bool) {
	depth, at := 0, 0
	for line := range strings.Lines(text) {
		brackets, sets, ok := scanTOML(line)
		if !ok || depth > 0 && sets {
			return "", false
		}
		depth += brackets
		if at += len(line); depth <= 0 {
			return text[:at], depth == 0
		}
	}
	return "", false
}

// scanTOML counts the brackets that a line leaves open, and tells whether it sets
// something; not ok is a string without an end.
func scanTOML(line string) (brackets int, sets, ok bool) {
	var quote byte
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote == '"' && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '#':
			return brackets, sets, true
		case c == '"', c == '\'':
			quote = c
		case c == '[', c == '{':
			brackets++
		case c == ']', c == '}':
			brackets--
		case c == '=':
			sets = true
		}
	}
	return brackets, sets, quote == 0
}
