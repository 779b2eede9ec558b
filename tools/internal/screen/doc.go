// Package screen turns what programs send to a terminal into text, line by line as a
// person would have seen it: what overwrote a line has replaced it, colours and other
// control sequences are gone. It is pure, and its work and memory grow with the bytes.
package screen
