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

// MatchString is [regexp.Regexp.MatchString].
func (r *Regexp) MatchString(s string) bool { return r.get().MatchString(s) }

// FindString is [regexp.Regexp.FindString].
func (r *Regexp) FindString(s string) string { return r.get().FindString(s) }

// FindIndex is [regexp.Regexp.FindIndex].
func (r *Regexp) FindIndex(b []byte) []int { return r.get().FindIndex(b) }

// FindStringSubmatch is [regexp.Regexp.FindStringSubmatch].
func (r *Regexp) FindStringSubmatch(s string) []string { return r.get().FindStringSubmatch(s) }

// FindAllString is [regexp.Regexp.FindAllString].
func (r *Regexp) FindAllString(s string, n int) []string { return r.get().FindAllString(s, n) }

// FindAllStringSubmatch is [regexp.Regexp.FindAllStringSubmatch].
func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.get().FindAllStringSubmatch(s, n)
}

// ReplaceAll is [regexp.Regexp.ReplaceAll].
func (r *Regexp) ReplaceAll(b, with []byte) []byte { return r.get().ReplaceAll(b, with) }

// ReplaceAllString is [regexp.Regexp.ReplaceAllString].
func (r *Regexp) ReplaceAllString(s, with string) string { return r.get().ReplaceAllString(s, with) }
