package files

import (
	"maps"
	"slices"
)

// lock adds one lock without waiting; waiting with others held could be for ever.
func (tx *Tx) lock(key string) bool {
	if tx.held[key] {
		return true
	}
	if !tx.f.locks.try(key) {
		tx.wanted = append(tx.wanted, key)
		return false
	}
	tx.held[key] = true
	return true
}

// lockAll waits for the keys in their order, which all transactions share.
func (tx *Tx) lockAll(keys []string) {
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		tx.f.locks.lock(key)
		tx.held[key] = true
	}
}

// keysOf returns the locks of those names that lead somewhere inside.
func (tx *Tx) keysOf(names []string) []string {
	var keys []string
	for _, name := range names {
		for _, follow := range [...]bool{false, true} {
			if p, err := tx.f.resolve(tx.st, name, follow); err == nil {
				keys = append(keys, lockKey(p.Rel))
			}
		}
	}
	return keys
}

func (tx *Tx) keys() []string { return slices.Collect(maps.Keys(tx.held)) }

func (tx *Tx) release() {
	for key := range tx.held {
		tx.f.locks.unlock(key)
	}
}
