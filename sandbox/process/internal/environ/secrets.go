package environ

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/perstack-ai/perstack-base/sandbox/internal/lazyregexp"
	"github.com/perstack-ai/perstack-base/sandbox/internal/settings"
)

// A variable is withheld from commands when a word of its name is one of these;
// words end at underscores and where the case changes.
var secretWords = []string{"KEY", "TOKEN", "SECRET", "PASS", "PASSWD", "PASSWORD", "PASSPHRASE", "PWD", "PW", "PSWD", "PAT", "JWT",
	"CREDENTIAL", "AUTH", "COOKIE"}

// A word that ends in one of these is one too: PGPASSWORD, SSHPASS, APIKEY.
var secretEnds = []string{"PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "TOKEN", "SSHPASS", "APIKEY"}

// Whatever their words: what is never withheld, what always is.
var (
	plainNames     = []string{"PATH", "PWD", "OLDPWD", "TOKENIZERS_PARALLELISM", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_CA_BUNDLE"}
	plainPrefixes  = []string{"GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_CONFIG_KEY_"}
	secretPrefixes = []string{"AWS_", "PERSTACK_BASE_"}
)

// passwordInURL finds a password in a URL.
var passwordInURL = lazyregexp.New(`([a-zA-Z][a-zA-Z0-9+.-]*://[^\s/?#:@'"]*):[^\s/?#@'"]+@`)

// looksSecret reports whether a variable looks like a secret, by its name in any
// case, or by its value.
func looksSecret(name, value string) bool {
	upper := strings.ToUpper(name)
	begins := func(prefix string) bool { return strings.HasPrefix(upper, prefix) }
	switch {
	case slices.Contains(plainNames, upper), slices.ContainsFunc(plainPrefixes, begins):
		return false
	case slices.ContainsFunc(secretPrefixes, begins), slices.ContainsFunc(wordsOf(name), isSecretWord):
		return true
	}
	return passwordInURL.MatchString(value) || settings.HasToken(value)
}

func isSecretWord(word string) bool {
	word = strings.TrimRight(strings.ToUpper(word), "0123456789")
	for _, w := range []string{word, strings.TrimSuffix(word, "S")} {
		if slices.Contains(secretWords, w) || slices.ContainsFunc(secretEnds, func(end string) bool { return strings.HasSuffix(w, end) }) {
			return true
		}
	}
	return false
}

// wordsOf splits a name at everything that is no letter or digit, and where the
// case changes: apiKey, APIKey and API_KEY have the same words.
func wordsOf(name string) (words []string) {
	var word []rune
	end := func() {
		if len(word) > 0 {
			words, word = append(words, string(word)), nil
		}
	}
	runes := []rune(name)
	for i, r := range runes {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			end()
			continue
		}
		if len(word) > 0 && unicode.IsUpper(r) {
			before := word[len(word)-1]
			if !unicode.IsUpper(before) || i+1 < len(runes) && unicode.IsLower(runes[i+1]) {
				end()
			}
		}
		word = append(word, r)
	}
	end()
	return words
}

// Withheld reports whether the host's variable stays with the host. Patterns
// are shell patterns over whole names.
func Withheld(name, value string, pass []string) bool {
	return looksSecret(name, value) && !slices.ContainsFunc(pass, func(pattern string) bool {
		ok, _ := path.Match(pattern, name)
		return ok || pattern == name
	})
}

// Unset is a script for bash and zsh that takes the variables away that commands
// do not get, because of their names or values. names are words of the shell that
// become all names, value is one that becomes the value of $perstack_n.
func Unset(pass []string, names, value string) string {
	plain, secret := []string{"_BASH*", "_COMP_*", "_DIRSTACK_", "_GROUPS_", "_LINENO_", "_FUNCNAME_", "_HISTCMD_"}, []string(nil) // looking at bash's own would make some of them
	for _, name := range append(slices.Clone(plainNames), pass...) {
		if shellPattern.MatchString(name) {
			plain = append(plain, "_"+name+"_")
		}
	}
	for _, prefix := range plainPrefixes {
		plain = append(plain, "_"+prefix+"*")
	}
	for _, prefix := range secretPrefixes {
		secret = append(secret, "_"+anyCase(prefix)+"*")
	}
	for _, w := range secretWords {
		title := w[:1] + strings.ToLower(w[1:])
		secret = append(secret, "*_"+anyCase(w)+"_*", "*_"+anyCase(w)+"[Ss]_*", "*?"+title+"[![:lower:]]*", "*_"+strings.ToLower(w)+"[[:upper:]]*")
	}
	for _, w := range secretEnds {
		secret = append(secret, "*"+anyCase(w)+"_*", "*"+anyCase(w)+"[Ss]_*")
	}
	return "for perstack_n in " + names + "; do case _${perstack_n}_ in\n" +
		strings.Join(plain, "|") + ") ;;\n" +
		strings.Join(secret, "|") + ") builtin unset \"$perstack_n\" 2>/dev/null || builtin : ;;\n" +
		"*) case " + value + " in *://*:*@*|" + strings.Join(settings.TokenPatterns(), "|") + ") builtin unset \"$perstack_n\" 2>/dev/null || builtin : ;; esac ;;\n" +
		"esac; done; builtin unset perstack_n\n"
}

// shellPattern are patterns that mean the same to a shell as to path.Match, and
// cannot be anything else.
var shellPattern = lazyregexp.New(`^[A-Za-z0-9_*?]+$`)

// anyCase is a pattern of a shell for a word in any case.
func anyCase(word string) string {
	var b strings.Builder
	for _, c := range word {
		if lower := unicode.ToLower(c); lower != c {
			b.WriteString("[" + string(c) + string(lower) + "]")
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// assignment finds what may be one in a script of a shell: name=, name+=, and
// ${name:=.
var assignment = lazyregexp.New(`[A-Za-z_][A-Za-z0-9_]*(\+|:)?[=-]`)

// WithoutSecrets empties the values of withheld assignments in a script, in
// comments too, and takes passwords out of URLs. Where it cannot tell the end of
// a value it takes too much rather than too little.
func WithoutSecrets(text []byte, withheld func(name, value string) bool) []byte {
	var out bytes.Buffer
	from := 0
	for {
		at := assignment.FindIndex(text[from:])
		if at == nil {
			break
		}
		begin, end, taken := from+at[0], from+at[1], 0
		name := strings.TrimRight(string(text[begin:end]), "+:=-")
		if assigns := text[end-1] == '=' || text[end-2] == ':'; assigns && (begin == 0 || text[begin-1] != '$') {
			if length := valueLength(text[:begin], text[end:]); withheld(name, string(text[end:end+length])) {
				taken = length
			}
		}
		out.Write(text[from:end])
		from = end + taken
	}
	out.Write(text[from:])
	return passwordInURL.ReplaceAll(out.Bytes(), []byte("$1@"))
}

// inComment reports whether the text's last line is one.
func inComment(text []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(text[bytes.LastIndexByte(text, '\n')+1:], " \t"), []byte("#"))
}

// insideOf is the quote that is open at the end of the text's last line, 0 for none.
func insideOf(text []byte) (quote byte) {
	for _, c := range text[bytes.LastIndexByte(text, '\n')+1:] {
		switch {
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case c == quote:
			quote = 0
		}
	}
	return quote
}

// valueLength is the length of the word of a shell that follows what stands
// before it. In a comment that is the rest of the line.
func valueLength(before, text []byte) int {
	if inComment(before) {
		if end := bytes.IndexByte(text, '\n'); end >= 0 {
			return end
		}
		return len(text)
	}
	inside := insideOf(before)
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case c == inside && inside != 0:
			return i
		case c == '\'' || c == '"' || c == '`':
			if i += quotedLength(text[i:], inside, i > 0 && text[i-1] == '$'); i < len(text) && text[i] != c {
				return i
			}
		case c == '(' || c == '{':
			depth++
		case c == ')' || c == '}':
			if depth--; depth < 0 {
				return i
			}
		case depth == 0 && bytes.IndexByte([]byte(" \t\r\n;&|<>"), c) >= 0:
			return i
		}
	}
	return len(text)
}

// quotedLength is where the quote ends that text begins with, or the one around it.
func quotedLength(text []byte, inside byte, dollar bool) int {
	quote := text[0]
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == quote, c == inside && inside != 0:
			return i
		case c == '\\' && (quote != '\'' || dollar):
			i++
		}
	}
	return len(text)
}
