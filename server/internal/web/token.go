package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"
)

// minToken is the fewest characters of a token.
const minToken = 16

// ParseToken reads a token as it stands in a file or variable, without its line
// end. One that could be guessed is refused.
func ParseToken(text string) (string, error) {
	token := strings.TrimRight(text, "\r\n")
	switch {
	case token == "":
		return "", errors.New("the token is empty")
	case len(token) < minToken:
		return "", errors.New("the token is shorter than 16 characters")
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", errors.New("the token has characters that do not fit into a header; use letters, digits and punctuation")
	}
	return token, nil
}

// tokenHeader carries the token where Authorization does not arrive: proxies that check a
// credential of their own, as the router of agent-sandbox, keep that header to themselves.
const tokenHeader = "X-Perstack-Base-Token"

// hasToken says whether a request carries the token want in one of the two headers.
func hasToken(h http.Header, want string) bool {
	return sameToken(bearer(h.Get("Authorization")), want) || sameToken(strings.TrimSpace(h.Get(tokenHeader)), want)
}

// bearer returns the token of an Authorization header, "" when it has none.
func bearer(header string) string {
	scheme, token, ok := strings.Cut(header, " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// sameToken compares in a time that tells nothing of want.
func sameToken(got, want string) bool {
	a, b := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
