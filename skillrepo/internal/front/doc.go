// Package front reads the front matter of a SKILL.md, leniently: start with [Divide],
// which finds it in a file, and [ParseMapping], which makes a plain tree of its YAML.
package front

// A Warn is told what is odd, in a sentence.
type Warn func(format string, args ...any)
