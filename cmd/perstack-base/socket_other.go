//go:build !unix

package main

import (
	"net"
	"os"
)

// privately relies on the access lists that a new file inherits here.
func privately(bind func() (net.Listener, error)) (net.Listener, error) { return bind() }

// readableByOthers cannot be told from a mode here.
func readableByOthers(os.FileInfo) bool { return false }
