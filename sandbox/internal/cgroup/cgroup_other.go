//go:build !linux

package cgroup

import (
	"errors"
	"os"
)

// A Tree does not exist here.
type Tree struct{ Memory, Processes, CPU bool }

// Open fails.
func Open() (*Tree, error) { return nil, errors.New("this system has no control groups") }

// Leave does nothing.
func Leave() {}

// A Container does not exist here.
type Container struct{}

// Around is never called.
func Around() *Container { return nil }

// Keeps sees nothing to the contrary.
func (*Container) Keeps(Limits) (memory, processes, cpus bool) { return true, true, true }

// Limits are those of one leaf.
type Limits struct {
	Memory    int64
	Processes int
	CPUs      float64
}

// A Leaf does not exist here.
type Leaf struct{ Procs *os.File }

// NewLeaf is never called.
func (*Tree) NewLeaf(Limits) (*Leaf, error) {
	return nil, errors.New("this system has no control groups")
}

// Events count nothing here.
type Events struct{ MemoryReached, MemoryKilled, ProcessesRefuse int }

// Events are none.
func (*Leaf) Events() Events { return Events{} }

// Close does nothing.
func (*Leaf) Close() error { return nil }
