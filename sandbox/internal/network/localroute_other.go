//go:build !linux

package network

import "net/netip"

// localRoute knows of no addresses but those of interfaces.
func localRoute(netip.Addr) bool { return false }
