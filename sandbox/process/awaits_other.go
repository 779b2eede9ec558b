//go:build !linux

package process

// awaitsInput cannot be told here.
func (*job) awaitsInput() bool { return false }
