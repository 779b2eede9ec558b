//go:build unix && !linux

package proc

// Expendable runs start.
func Expendable(start func() error) error { return start() }

// Reserve does nothing here.
func Reserve(pid int) {}
