//go:build linux && !amd64 && !arm64

package proc

import "golang.org/x/sys/unix"

// systemCall is not known on this architecture.
var systemCall [1]byte

// childState is nothing here.
type childState struct{}

func stoppedAt(int) (childState, error) { return childState{}, unix.EPERM }

func (childState) put(int) error                            { return unix.EPERM }
func (childState) next() uintptr                            { return 0 }
func (childState) stack() uintptr                           { return 0 }
func (childState) result() int64                            { return 0 }
func (c childState) calling(uintptr, ...uintptr) childState { return c }
