package server

import (
	"fmt"
	"io"

	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/sandbox/trace"
)

// traces are the spans of a server, and the file that they go to.
type traces struct {
	tracer *trace.Tracer // nil: no spans
	file   io.Closer
}

// open opens the file, where there is to be one.
func (t *traces) open(cfg Config, commands *process.Commands) error {
	if cfg.TraceFile == "" {
		return nil
	}
	file, err := commands.OpenOwn(cfg.TraceFile)
	if err != nil {
		return fmt.Errorf("cannot append to the trace file: %w", err)
	}
	t.file = file
	t.tracer = trace.New(trace.Config{To: file, Service: Name, Version: cfg.Version, Log: cfg.Log})
	return nil
}

// close writes the last spans, for a moment at most.
func (t *traces) close() error {
	if t.file == nil {
		return nil
	}
	t.tracer.Close()
	return t.file.Close()
}
