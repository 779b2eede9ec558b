//go:build race

package sandbox

// raced says that the race detector slows and fattens what is tested.
const raced = true
