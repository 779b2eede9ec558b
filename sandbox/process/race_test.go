//go:build race

package process

// raced says that the race detector slows and fattens what is tested.
const raced = true
