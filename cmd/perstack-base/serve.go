package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/server"
)

func serveCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Serve MCP on standard input and output, or as --transport says (the same as no command)",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return serve(cmd.Context(), o) },
	}
}

// quiet is when a client that has just connected mostly asks for nothing more.
const quiet = 100 * time.Millisecond

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
	if s.RunsCommands() {
		if err := s.Commands().QuotaHeld(); err != nil {
			return hinted(err)
		}
	}
	defer time.AfterFunc(quiet, settle).Stop()
	warnUnconfined(s, o)
	if hint := s.OwnerHint(); hint != "" {
		fmt.Fprintln(stderr, "perstack-base: warning:", hint)
	}
	context.AfterFunc(ctx, func() { killOnSignal(s) })
	if cfg.HTTP != nil {
		return serveHTTP(ctx, o, s, cfg.HTTP)
	}
	banner(o)
	if err := s.ServeStdio(ctx, os.Stdin, claimStdout()); err != nil {
		return failure{err}
	}
	return nil
}

// errTakenOver refuses a socket that commands could replace by one of their own.
var errTakenOver = errors.New("commands can write there, so one could listen in its place and learn the token and the calls of clients; " +
	"name a socket outside of the workspace and of what --allow-write permits, as unix:~/run/mcp")

func serveHTTP(ctx context.Context, o *options, s *server.Server, cfg *server.HTTP) error {
	if path, ok := strings.CutPrefix(o.web.listen, unixPrefix); ok && s.RunsCommands() {
		if err := leadsAround(path, o.commandsWrite(), errTakenOver); err != nil {
			return fmt.Errorf("--listen %s%w", unixPrefix, err)
		}
	}
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

// warnUnconfined says in one line when there are commands and the kernel does not
// confine them: at once where nothing has to be tried to know that, otherwise with
// the first command.
func warnUnconfined(s *server.Server, o *options) {
	if !s.RunsCommands() {
		return
	}
	for _, k := range s.Commands().NotKept() {
		fmt.Fprintf(stderr, "perstack-base: nothing keeps %s %s here: %s (perstack-base doctor tells more)\n", k.Flag, k.Value, k.By)
	}
	unenforced := ""
	if rules := o.cfg.Network.Rules(); len(rules) > 0 {
		unenforced = ", and nothing enforces --network " + o.cfg.Network.String()
	}
	s.Commands().WhenUnconfined(func(why string) {
		fmt.Fprintf(stderr, "perstack-base: commands are not confined: %s%s (perstack-base doctor tells more)\n", why, unenforced)
	})
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
	in, err := os.Stdin.Stat()
	null, nullErr := os.Stat(os.DevNull)
	if err != nil || in.Mode()&os.ModeCharDevice == 0 || nullErr == nil && os.SameFile(in, null) {
		return
	}
	dir, err := filepath.Abs(o.cfg.Workspace)
	if err != nil {
		dir = o.cfg.Workspace
	}
	fmt.Fprintf(stderr, "perstack-base %s speaks MCP on standard input and output, for an MCP client to start it.\n"+
		"Workspace: %s. Ctrl-D ends it; perstack-base --help tells what else it does.\n", buildVersion(), dir)
}

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

// runnerCommand is what a server starts in a container, to run its commands there.
func runnerCommand() *cobra.Command {
	return &cobra.Command{
		Use: process.RunnerCommand, Hidden: true, Args: noArguments,
		// The environment is the image's: it may be one that serves by it.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },

		Short: "Run the commands of a server that speaks on standard input and output (started by serve --container)",
		RunE: func(*cobra.Command, []string) error {
			in, out, err := process.TakeStreams()
			if err != nil {
				return failure{err}
			}
			if err := process.ServeRunner(in, out); err != nil {
				return failure{err}
			}
			return nil
		},
	}
}
