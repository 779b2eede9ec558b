// Package diff shows people what a call has changed: a unified diff of all its files,
// in the form that git gives it, within bounds. Start with [Unified]; trim.go keeps the
// work small where little of a large file changed.
package diff
