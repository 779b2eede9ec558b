//go:build !linux

package main

import "runtime"

// settle collects the garbage of the start, or that would fall into the first command.
func settle() { runtime.GC() }
