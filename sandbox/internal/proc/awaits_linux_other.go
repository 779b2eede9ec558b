//go:build linux && !amd64

package proc

// The calls that this architecture has not, or that are not looked at.
const (
	selectCall = -1
	pollCall   = -2
	epollWait  = -3
)
