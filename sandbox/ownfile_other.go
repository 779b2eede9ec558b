//go:build !unix

package sandbox

// openAtOnce is not needed here: no file's opening waits for another program.
const openAtOnce = 0
