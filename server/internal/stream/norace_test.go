//go:build !race

package stream

// raced says that the race detector slows and fattens what is tested.
const raced = false
