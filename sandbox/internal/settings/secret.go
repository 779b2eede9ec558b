package settings

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// A list holds the names of the settings that are copied, as patterns of path.Match
// between spaces: all that known matches and but does not. What a list does not know
// may be a secret.
type list struct{ known, but string }

func (l list) has(name string) bool {
	return matches(name, l.known) && !matches(name, l.but) && !secretWord(name)
}

func matches(name, patterns string) bool {
	return slices.ContainsFunc(strings.Fields(patterns), func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

// secretWords stand in names and values that are secrets or come with one.
var secretWords = []string{"bearer", "basic ", "authorization", "token", "secret", "passw", "passphrase", "apikey", "api-key", "api_key", "sshpass", "credential"}

func secretWord(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(text, word) })
}

// secretText reports whether a value, or a line, is not to be copied whatever it
// belongs to.
func secretText(text string) bool { return secretWord(text) || hasLogin(text) || hasControl(text) }

var (
	// httpLogin is any name in a URL of HTTP, where tokens stand for names.
	httpLogin = regexp.MustCompile(`(?is)https?:.*@`)
	// sshUser is no secret: a name without a password.
	sshUser = regexp.MustCompile(`\b(git\+)?ssh://[\w.-]+@`)
	// passwordAt is NAME:PASSWORD@, also without a scheme.
	passwordAt = regexp.MustCompile(`:\S*@`)
)

// hasLogin reports whether a text holds an address with a secret in it.
func hasLogin(text string) bool {
	return httpLogin.MatchString(text) || passwordAt.MatchString(sshUser.ReplaceAllString(text, ""))
}

// hasControl reports whether a text holds characters that no setting needs and that
// the reader of a copy could take otherwise than we do.
func hasControl(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\t' || r == unicode.ReplacementChar
	})
}

// shown is the name under which a setting is told to be left out.
func shown(name string) string {
	if name == "" || hasLogin(name) {
		return "a setting whose name may be secret"
	}
	return name
}
