//go:build !linux

package tree

import "syscall"

// Strays are none here: what leaves a process group is out of reach, and nothing leaves a job.
type Strays struct {
	Tmp string
	All bool
}

func (Strays) Wait() Ending          { return Ending{} }
func (Strays) Signal(syscall.Signal) {}
func (Strays) Kill()                 {}
func (Strays) Alive() bool           { return false }
func (Strays) Survivors() bool       { return false }
func (Strays) Release()              {}
