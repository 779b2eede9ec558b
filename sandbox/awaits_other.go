//go:build !linux

package sandbox

// awaitsInput cannot be told here.
func (*job) awaitsInput() bool { return false }
