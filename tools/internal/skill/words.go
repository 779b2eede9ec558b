package skill

import "strings"

// splitWords splits a line into words as a POSIX shell does, with quotes and
// backslashes, and expands nothing. ok is false when a quote or a backslash is open.
func splitWords(line string) (words []string, ok bool) {
	var word strings.Builder
	var quote rune
	begun, escaped := false, false
	for _, r := range line {
		switch {
		case escaped:
			if quote == '"' && !strings.ContainsRune("$`\"\\\n", r) {
				word.WriteByte('\\')
			}
			if r != '\n' {
				word.WriteRune(r)
			}
			escaped = false
		case quote == '\'' && r != '\'', quote == '"' && r != '"' && r != '\\':
			word.WriteRune(r)
		case r == '\\':
			escaped, begun = true, true
		case quote != 0:
			quote = 0
		case r == '\'' || r == '"':
			quote, begun = r, true
		case strings.ContainsRune(" \t\n\r", r):
			if begun {
				words = append(words, word.String())
				word.Reset()
			}
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words, quote == 0 && !escaped
}
