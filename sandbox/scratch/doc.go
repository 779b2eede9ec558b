// Package scratch keeps directories outside of the workspace, where no command of
// another workspace reaches them.
//
// Start with [NewWorkdirs], the place for all of one workspace: [Workdir] is a run
// workspace, which ends with its session, artifacts.go takes files out of it, and [Cache]
// is what build tools keep, which lives on (cacheuse.go tells whose caches there are, and
// sweeps them).
package scratch
