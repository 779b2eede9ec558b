// Package skill turns loaded skills into what a model reads and decides what
// their text may cause: rendering, inline commands, hook matchers, allowed-tools.
//
// Start with [Page], one rendering of one skill, and [Match] and [Permits], the
// two policies. Everything here is a function of its arguments; commands are run
// through the [Runner] that the caller passes.
package skill
