//go:build !linux

package usage

// A Reserve is not needed here.
type Reserve struct{}

func (*Reserve) Close() {}
