// Package netlink writes requests about routes and interfaces to the kernel, and reads
// its answers. Start with [Socket]; [RouteKind] asks what most want to know.
package netlink
