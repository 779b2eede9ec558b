// Package tree starts programs, each as the root of a tree of processes that is waited
// for, signalled and killed as a whole.
//
// Start with [Launch], what is needed to start one. [StartConfined] has the kernel keep
// the tree together; without that, [StartGroup] goes by process groups and, on Linux, by
// descent, and on Windows by job objects. The [Watchdog] ends trees when the server has
// died, [End] ends them with grace.
package tree
