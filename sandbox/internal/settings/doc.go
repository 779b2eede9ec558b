// Package settings copies the user's configuration of git, npm, pip, cargo and go
// without what is secret in it, for commands whose HOME is private: so a company's
// registry is asked and not the public one, and commits have the user's name.
//
// Start with [Collect]. It works on texts; who reads and writes the files is the
// caller's matter. Settings that are not known to be harmless are left out; these
// are named, never shown.
package settings
