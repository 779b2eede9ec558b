// Package disk has what the packages of the sandbox do with directories alike: temporary
// files that replace others (temp.go), removal of whole trees that commands may have
// filled (removal.go), locks and owners of files.
package disk
