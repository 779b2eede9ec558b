package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/perstack-ai/perstack-base/server"
)

func serveCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Serve MCP, on standard input and output unless --transport says otherwise (what a bare start does)",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return serve(cmd.Context(), o) },
	}
}

// serve speaks MCP until ctx ends, or standard input where that is spoken on. A second signal ends everything at once.
func serve(ctx context.Context, o *options) error {
	cfg, endLog, err := o.config()
	if err != nil {
		return err
	}
	defer endLog()
	s, err := server.New(cfg)
	if err != nil {
		return err
	}
	defer s.Close()
	go func() {
		<-ctx.Done()
		killOnSignal(s)
	}()
	if cfg.HTTP != nil {
		return serveHTTP(ctx, o, s, cfg.HTTP)
	}
	banner(o)
	if err := s.ServeStdio(ctx, os.Stdin, claimStdout()); err != nil {
		return failure{err}
	}
	return nil
}

func serveHTTP(ctx context.Context, o *options, s *server.Server, cfg *server.HTTP) error {
	ln, err := o.web.open(cfg)
	if err != nil {
		return err
	}
	defer ln.Close()
	if err := s.ServeListener(ctx, ln); err != nil {
		return failure{err}
	}
	return nil
}

// claimStdout takes standard output for the protocol alone: whatever else prints
// goes to standard error from here on.
func claimStdout() *os.File {
	out := os.Stdout
	os.Stdout = os.Stderr
	return out
}

// banner tells a person at a terminal what is going on. A program sees nothing.
func banner(o *options) {
	if info, err := os.Stdin.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return
	}
	dir, err := filepath.Abs(o.workspace)
	if err != nil {
		dir = o.workspace
	}
	fmt.Fprintf(os.Stderr, "perstack-base %s: MCP on stdin and stdout, workspace %s; Ctrl-D ends\n", buildVersion(), dir)
}
