package patch

import "math"

// A tree answers for any interval of a list of positions how many are left in it
// and which is the smallest, and takes positions out.
type tree struct {
	size  int      // leaves; leaf i is node size+i
	count []uint32 // positions left below each node
	least []uint32 // the smallest of them, gone when there is none
}

// gone is the place of a position that was taken out.
const gone = math.MaxUint32

func newTree(positions []uint32) *tree {
	n := len(positions)
	t := &tree{size: n, count: make([]uint32, 2*n), least: make([]uint32, 2*n)}
	for i, p := range positions {
		t.count[n+i], t.least[n+i] = 1, p
	}
	for i := n - 1; i > 0; i-- {
		t.join(i)
	}
	return t
}

// join works out an inner node from the two below it.
func (t *tree) join(i int) {
	t.count[i] = t.count[2*i] + t.count[2*i+1]
	t.least[i] = min(t.least[2*i], t.least[2*i+1])
}

// remove takes position number i out.
func (t *tree) remove(i int) {
	i += t.size
	t.count[i], t.least[i] = 0, gone
	for i /= 2; i > 0; i /= 2 {
		t.join(i)
	}
}

// query looks at the positions numbered from low to high-1.
func (t *tree) query(low, high int) (count int, least uint32) {
	least = gone
	add := func(i int) {
		count += int(t.count[i])
		least = min(least, t.least[i])
	}
	for low, high = low+t.size, high+t.size; low < high; low, high = low/2, high/2 {
		if low%2 == 1 {
			add(low)
			low++
		}
		if high%2 == 1 {
			high--
			add(high)
		}
	}
	return count, least
}
