// Command perstack-base is an MCP server that gives a client the hands of an
// agent inside one workspace directory. See the package server for how it is
// built; here are only flags and subcommands, one file each.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"

	"github.com/perstack-ai/perstack-base/sandbox/process"
)

// The main thread lives as long as the process, so it must never be the one
// that is confined for a command: lock it to the main goroutine.
func init() { runtime.LockOSThread() }

func main() {
	process.Helpers() // returns at once unless this process was started to help another
	os.Exit(run(os.Args[1:]))
}

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // the work failed, or a second signal cut it short
	exitUsage  = 2 // flags, names or the workspace are not usable
)

// run executes one command line and returns the exit code.
func run(args []string) int {
	if err := process.Harden(); err != nil {
		fmt.Fprintln(os.Stderr, "perstack-base: this process could not be hardened:", err)
	}
	surviveBrokenPipe()
	ctx, stop := signal.NotifyContext(context.Background(), endSignals...)
	defer stop()
	defer stderr.flush()
	cmd := rootCommand()
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	var failed failure
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &failed):
		if failed.err != nil {
			fmt.Fprintln(stderr, "perstack-base:", failed.err)
		}
		return exitFailed
	}
	fmt.Fprintln(stderr, "perstack-base:", err)
	return exitUsage
}

// A failure is work that failed, in contrast to a command line that makes no
// sense. A nil err has been told already.
type failure struct{ err error }

func (f failure) Error() string { return fmt.Sprint(f.err) }
func (f failure) Unwrap() error { return f.err }
