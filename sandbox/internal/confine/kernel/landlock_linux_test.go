//go:build amd64 || arm64

package kernel

import "testing"

func TestHandledRights(t *testing.T) {
	for abi, want := range map[int]uint64{1: 0x1fff, 2: 0x3fff, 3: 0x7fff, 4: 0x7fff, 5: 0xffff, 7: 0xffff} {
		if got := handledFS(abi); got != want {
			t.Errorf("abi %d: %#x, want %#x", abi, got, want)
		}
	}
	for abi := 1; abi <= 7; abi++ {
		a := PolicyAttr(abi, false)
		if (a.Handled_access_net != 0) != (abi >= 4) || (a.Scoped != 0) != (abi >= 6) {
			t.Errorf("abi %d: %+v", abi, a)
		}
		if PolicyAttr(abi, true).Handled_access_net != 0 {
			t.Errorf("abi %d: the open network is closed", abi)
		}
	}
}
