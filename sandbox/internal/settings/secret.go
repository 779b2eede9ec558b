package settings

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/perstack-ai/perstack-base/sandbox/internal/lazyregexp"
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
func secretText(text string) bool {
	return secretWord(text) || hasLogin(text) || HasToken(text) || inQuery.MatchString(text) || inPath.MatchString(text) || hasControl(text)
}

var (
	// knownToken is a token of a well-known service, a key in the form of PEM, or the
	// header that carries a login.
	knownToken = sync.OnceValue(func() *regexp.Regexp {
		var forms []string
		for _, f := range tokenForms {
			forms = append(forms, regexp.QuoteMeta(f.begins)+`[`+f.of()+`]{`+strconv.Itoa(f.length)+`,}`)
		}
		return regexp.MustCompile(`\b(` + strings.Join(forms, "|") + `)` +
			`|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}|-----BEGIN [A-Z ]*PRIVATE KEY|hooks\.slack\.com/services/|(?i:authorization:\s*\S|\b(password|passwd|pwd)=[^\s;&])`)
	})
	// inQuery is an address with a query: signatures and keys stand there.
	inQuery = lazyregexp.New(`://\S*\?\S*=`)
	// inPath is an address with a part in its path that looks drawn by lot.
	inPath = lazyregexp.New(`://[^\s/]+/\S*\b(?:[A-Za-z]+[0-9]|[0-9]+[A-Za-z])[A-Za-z0-9]{14,}\b`)
)

// A tokenForm is how the tokens of a service look: what they begin with, and how many
// letters and digits follow at least, in some with dashes between.
type tokenForm struct {
	begins string
	length int
	dashed bool
}

func (f tokenForm) of() string {
	if f.dashed {
		return "A-Za-z0-9_-"
	}
	return "A-Za-z0-9"
}

var tokenForms = []tokenForm{
	{"ghp_", 20, false}, {"gho_", 20, false}, {"ghu_", 20, false}, {"ghs_", 20, false}, {"ghr_", 20, false}, {"github_pat_", 20, true},
	{"glpat-", 16, true}, {"gldt-", 16, true}, {"glrt-", 16, true}, {"glcbt-", 16, true}, {"glptt-", 16, true}, {"gloas-", 16, true},
	{"npm_", 20, false}, {"pypi-Ag", 16, true}, {"dckr_pat_", 16, true}, {"hf_", 20, false},
	{"xoxb-", 12, true}, {"xoxp-", 12, true}, {"xoxa-", 12, true}, {"xoxr-", 12, true}, {"xoxs-", 12, true},
	{"sk-proj-", 16, true}, {"sk-ant-", 16, true}, {"sk-svcacct-", 16, true}, {"sk-", 32, false}, {"sk_live_", 16, false}, {"rk_live_", 16, false},
	{"ya29.", 16, true}, {"AIza", 30, true}, {"AKIA", 16, false}, {"ASIA", 16, false},
}

// TokenPatterns are patterns of a shell for values in which HasToken finds something,
// but for words in other case.
func TokenPatterns() []string {
	patterns := []string{"*eyJ????????*.????????*", `*-----BEGIN*PRIVATE\ KEY*`, "*hooks.slack.com/services/*", "*[Aa]uthorization:*", "*[Pp]assword=?*"}
	for _, f := range tokenForms {
		patterns = append(patterns, "*"+f.begins+strings.Repeat("["+f.of()+"]", f.length)+"*")
	}
	return patterns
}

// HasToken reports whether a text holds what is a secret by its form, whatever it
// belongs to.
func HasToken(text string) bool { return knownToken().MatchString(text) }

var (
	// httpLogin is any name in a URL of HTTP and the like, where tokens stand for names.
	httpLogin = lazyregexp.New(`(?is)(https?|ftps?|socks[45]h?):.*@`)
	// sshUser is no secret: a name without a password.
	sshUser = lazyregexp.New(`\b(git\+)?ssh://[\w.-]+@`)
	// passwordAt is NAME:PASSWORD@, also without a scheme.
	passwordAt = lazyregexp.New(`:\S*@`)
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
