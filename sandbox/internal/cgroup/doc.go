// Package cgroup puts the commands of each session into a control group of their own,
// where this program was given a part of the tree of control groups (version 2, as
// systemd does by Delegate=yes): the one place where the kernel counts, exactly and
// for all of them together, memory, processes and processor time.
//
// Start with [Open], which finds that part and moves this program into a leaf of it:
// the kernel lets a group either hold processes or share out what it has. A [Leaf] is
// the group of one session.
//
//	the group that the program was started in
//	    perstack-base-NAME     what one server has
//	        server             the server itself, and what it starts besides commands
//	        session-1          the commands of one session
package cgroup
