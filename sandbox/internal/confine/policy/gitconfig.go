package policy

import "strings"

// A gitSetting is one variable of a file of git's settings, its section and key in lower case.
type gitSetting struct{ section, key, value string }

// parseGitConfig reads settings as git does: quotes, escapes, comments, and values that go
// on in the next line.
func parseGitConfig(text string) (settings []gitSetting) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	section := ""
	for text = strings.TrimPrefix(text, "\ufeff"); text != ""; {
		switch c := text[0]; {
		case strings.ContainsRune(" \t\n\r", rune(c)):
			text = text[1:]
		case c == '#' || c == ';':
			_, text, _ = strings.Cut(text, "\n")
		case c == '[':
			section, text = gitSection(text[1:])
		default:
			end := strings.IndexAny(text, "=\n")
			if end < 0 || text[end] == '\n' { // a key without a value
				_, text, _ = strings.Cut(text, "\n")
				continue
			}
			s := gitSetting{section: section, key: strings.ToLower(strings.TrimSpace(text[:end]))}
			newer, _ := gitValue(text[end+1:], true)
			s.value, text = gitValue(text[end+1:], false)
			if settings = append(settings, s); newer != s.value {
				settings = append(settings, gitSetting{section, s.key, newer})
			}
		}
	}
	return settings
}

// gitSection reads the head of a section after its "[". A name in quotes may hold anything.
func gitSection(text string) (section, rest string) {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			quoted = !quoted
		case text[i] == '\\' && quoted:
			i++
		case text[i] == ']' && !quoted || text[i] == '\n':
			section, _, _ = strings.Cut(text[:i], " ")
			section, _, _ = strings.Cut(section, ".") // the old way to write a name in a section
			return strings.ToLower(section), text[i+1:]
		}
	}
	return "", ""
}

// gitValue reads a value after its "=". Blanks at its ends do not count unless they are
// quoted, and each of those between its words counts as one blank, or, with newer, as Git
// has it from 2.45 on, as what it is.
func gitValue(text string, newer bool) (value, rest string) {
	var b strings.Builder
	quoted, blanks := false, ""
	i := 0
scan:
	for ; i < len(text) && (text[i] != '\n'); i++ {
		c := text[i]
		switch {
		case quoted:
		case strings.IndexByte(" \t\r", c) >= 0:
			if b.Len() > 0 && newer {
				blanks += string(c)
			} else if b.Len() > 0 {
				blanks += " "
			}
			continue
		case c == '#' || c == ';':
			break scan
		}
		b.WriteString(blanks)
		blanks = ""
		switch {
		case c == '"':
			quoted = !quoted
		case c == '\\' && i+1 < len(text):
			if i++; text[i] != '\n' {
				b.WriteByte(unescapeGit(text[i]))
			}
		default:
			b.WriteByte(c)
		}
	}
	value, _, _ = strings.Cut(b.String(), "\x00") // git takes what comes before
	_, rest, _ = strings.Cut(text[i:], "\n")
	return value, rest
}

func unescapeGit(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	}
	return c
}
