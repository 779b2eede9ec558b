// Package search finds text in the files of a workspace and lists its
// directories.
//
// Start with three functions and one interface:
//
//   - [Grep] runs a [Query] and returns the answer as text: paths, counts or
//     lines, newest file first, one page of them.
//   - [List] shows a directory as a tree, one page of it.
//   - [EscapeName] makes any file name safe to print in a line.
//   - [Tree] is all the package sees of the machine: open directory handles,
//     and children opened relative to them. Only the files whose lines are shown
//     are opened by path once more, when it is known which are the newest.
//
// # How a search is fast
//
// Workers take directories and batches of files from one shared stack (walk.go),
// judge entries by ignore rules compiled once per directory (ignore.go), and
// read files into buffers of their own (scan.go). From the parsed pattern comes
// a set of literals one of which every match contains (literal.go); a
// [finder] seeks them by their rarest bytes (finder.go), and only lines with a
// candidate reach the automaton (dfa.go), which is built while it runs and
// answers one question: does this line match? Package regexp is asked only
// where in a line or a text a match lies.
package search
