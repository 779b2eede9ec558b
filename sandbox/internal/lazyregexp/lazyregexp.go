// Package lazyregexp compiles regular expressions when they are first used: dozens that
// are seldom needed would take a tenth of the time that the program takes to start.
package lazyregexp

import (
	"regexp"
	"sync"
)

// A Regexp is a regular expression that is compiled at its first use. Its methods are those
// of [regexp.Regexp].
type Regexp struct{ get func() *regexp.Regexp }

// New returns an expression, which must be correct. A test that uses it finds out.
func New(expr string) *Regexp {
	return &Regexp{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })}
}

// What follows is as in package regexp.

func (r *Regexp) MatchString(s string) bool { return r.get().MatchString(s) }

func (r *Regexp) FindString(s string) string { return r.get().FindString(s) }

func (r *Regexp) FindIndex(b []byte) []int { return r.get().FindIndex(b) }

func (r *Regexp) FindStringSubmatch(s string) []string { return r.get().FindStringSubmatch(s) }

func (r *Regexp) FindAllString(s string, n int) []string { return r.get().FindAllString(s, n) }

func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.get().FindAllStringSubmatch(s, n)
}

func (r *Regexp) ReplaceAll(b, with []byte) []byte { return r.get().ReplaceAll(b, with) }

func (r *Regexp) ReplaceAllString(s, with string) string { return r.get().ReplaceAllString(s, with) }
