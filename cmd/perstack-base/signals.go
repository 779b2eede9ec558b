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
