package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/perstack-ai/perstack-base/server"
)

// endSignals are what asks the server to end.
var endSignals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}

// killOnSignal waits for one more signal, then ends commands and process at once.
func killOnSignal(s *server.Server) {
	again := make(chan os.Signal, 1)
	signal.Notify(again, endSignals...)
	<-again
	s.Kill()
	os.Exit(exitFailed)
}

// surviveBrokenPipe keeps a write to a client that has gone from ending the
// process before its children are ended. The signal is taken, not ignored:
// children would inherit that it is ignored.
func surviveBrokenPipe() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
