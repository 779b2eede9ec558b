//go:build !unix

package process

// openAtOnce is not needed here: no file's opening waits for another program.
const openAtOnce = 0
