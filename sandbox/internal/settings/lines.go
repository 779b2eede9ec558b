package settings

import "strings"

// NPM copies a .npmrc: registries stay; logins, certificates and whatever belongs to
// one host alone ("//host/:name") go.
func NPM(text string) (copied string, left []string) {
	return filterLines(text, "=", func(key string) bool { return strings.HasPrefix(key, "//") || secretName(key) })
}

// Pip copies a pip.conf.
func Pip(text string) (copied string, left []string) { return filterLines(text, "=:", secretName) }

// GoEnv copies the file that "go env -w" writes. Its names are of the go command's
// own set, in which GOAUTH alone is about secrets.
func GoEnv(text string) (copied string, left []string) {
	return filterLines(text, "=", func(key string) bool { return key == "GOAUTH" })
}

// filterLines copies settings of the form NAME = VALUE, one a line, in which an
// indented line continues the one above. Comments are left out, unnamed.
func filterLines(text, separators string, secret func(name string) bool) (copied string, left []string) {
	var out strings.Builder
	skipping := false // the setting above was left out, and so what continues it
	name := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "", strings.HasPrefix(trimmed, "#"), strings.HasPrefix(trimmed, ";"):
			continue
		case line != strings.TrimLeft(line, " \t") && name != "": // continues
			if !skipping && (hasLogin(trimmed) || hasControl(trimmed)) {
				left = append(left, name)
				continue
			}
		case strings.HasPrefix(trimmed, "["):
			name, skipping = "", hasControl(trimmed) || hasLogin(trimmed)
		default:
			name, _, _ = cutAny(trimmed, separators)
			if skipping = secret(name) || hasLogin(trimmed) || hasControl(trimmed); skipping {
				left = append(left, name)
			}
		}
		if !skipping {
			out.WriteString(line + "\n")
		}
	}
	return out.String(), left
}

func cutAny(text, separators string) (before, after string, found bool) {
	if i := strings.IndexAny(text, separators); i >= 0 {
		return strings.TrimSpace(text[:i]), strings.TrimSpace(text[i+1:]), true
	}
	return text, "", false
}

// Cargo copies a config.toml. Every line that speaks of a secret goes, comments
// unnamed. A file with strings of several lines is not taken apart: with a secret in
// it all of it goes.
func Cargo(text string) (copied string, left []string) {
	several := strings.Contains(text, `"""`) || strings.Contains(text, "'''")
	var out strings.Builder
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if !secretName(trimmed) && !hasLogin(trimmed) && !hasControl(trimmed) {
			out.WriteString(line)
			continue
		}
		if several {
			return "", []string{"everything"}
		}
		if name, _, _ := cutAny(trimmed, "="); !strings.HasPrefix(name, "#") {
			left = append(left, name)
		}
	}
	return out.String(), left
}
