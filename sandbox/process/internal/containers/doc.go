// Package containers makes the containers in which commands run, with docker, podman or
// nerdctl, and keeps the stream to the runner in each.
//
// Start with [Fleet], all containers of one server: [Fleet.Launch] makes one that has
// some [Mounts], [Container.Await] waits until its runner has said what it found, and
// [Conn] carries the messages of package remote from then on. What comes from a runner
// is as hostile as what a command prints.
package containers
