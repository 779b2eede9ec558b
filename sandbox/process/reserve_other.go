//go:build !linux

package process

// A memoryReserve is not needed here.
type memoryReserve struct{}

func (*memoryReserve) close() {}
