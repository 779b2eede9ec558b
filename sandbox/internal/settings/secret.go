package settings

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// secretWords are the words of a setting's name that make it one to leave out. What
// names a file of keys is of no use either: commands cannot read it.
var secretWords = []string{"auth", "cert", "certfile", "cookie", "cookiefile", "credential", "credentials", "extraheader",
	"key", "keyfile", "pass", "passphrase", "passwd", "password", "pat", "secret", "smtppass", "sslcert", "sslkey", "token", "username"}

// secretName reports whether a setting of that name looks like a secret.
func secretName(name string) bool {
	return slices.ContainsFunc(words(name), func(word string) bool { return slices.Contains(secretWords, word) })
}

// words splits a name where it is not made of letters and digits, and where a
// capital begins a new word: "_authToken" is "auth" and "token".
func words(name string) (out []string) {
	var word []rune
	end := func() {
		if len(word) > 0 {
			out = append(out, strings.ToLower(string(word)))
			word = nil
		}
	}
	var before rune
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			end()
		} else {
			if unicode.IsUpper(r) && unicode.IsLower(before) {
				end()
			}
			word = append(word, r)
		}
		before = r
	}
	end()
	return out
}

// login is the part of a URL that names who asks, and often the password.
var login = regexp.MustCompile(`(?i)\b([a-z][a-z0-9+.-]*)://([^/\s"'@]*)@`)

// hasLogin reports whether a text holds a URL with a secret in it: a password, or
// any name at all over HTTP, where tokens stand for names.
func hasLogin(text string) bool {
	for _, m := range login.FindAllStringSubmatch(text, -1) {
		if strings.Contains(m[2], ":") || strings.HasPrefix(strings.ToLower(m[1]), "http") {
			return true
		}
	}
	return false
}

// hasControl reports whether a text holds characters that no setting needs and that
// the reader of a copy could take otherwise than we do.
func hasControl(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\t' || r == unicode.ReplacementChar
	})
}
