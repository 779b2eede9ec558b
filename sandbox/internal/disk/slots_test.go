package disk

import "testing"

func TestSlotsAreReused(t *testing.T) {
	var taken []int
	for range 130 {
		taken = append(taken, takeSlot())
	}
	seen := map[int]bool{}
	for _, n := range taken {
		if seen[n] {
			t.Fatalf("slot %d taken twice", n)
		}
		seen[n] = true
	}
	freeSlot(taken[70])
	if n := takeSlot(); n != taken[70] {
		t.Errorf("took %d, want the freed %d", n, taken[70])
	}
	for _, n := range taken {
		freeSlot(n)
	}
}
