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
	"slices"

	"github.com/spf13/cobra"

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
	var ctx context.Context
	var stop context.CancelFunc
	taken := make(chan struct{})
	go func() { // the runtime has another thread take each signal: this one goes on
		defer close(taken)
		surviveBrokenPipe()
		ctx, stop = signal.NotifyContext(context.Background(), endSignals...)
	}()
	defer stderr.flush()
	cmd := rootCommand(args...)
	<-taken
	defer stop()
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

// serves tells a command line with which clients start a server from one that may be a
// shell's question or a person's, who want completions and help. Clients wait for it.
func serves(args []string) bool {
	return len(args) > 0 && args[0] == "serve" && !slices.Contains(args, "--help")
}

// A failure is work that failed, in contrast to a command line that makes no
// sense. A nil err has been reported already.
type failure struct{ err error }

func (f failure) Error() string { return fmt.Sprint(f.err) }
func (f failure) Unwrap() error { return f.err }

const about = `perstack-base is an MCP server for agents. It gives a client tools to read, write, edit, search and
run things inside one directory, and the kernel keeps the commands that it runs in there.

Without a command, or with serve, it speaks MCP on standard input and output and serves the current
directory; an MCP client starts it so. With --transport http it serves many clients over HTTP.
Every flag below can also be set by an environment variable: --max-output is
PERSTACK_BASE_MAX_OUTPUT. In paths, ~/ is your home directory.`

const examples = `  perstack-base                                      serve the current directory
  perstack-base --workspace ~/project --read-only    look, but do not touch
  perstack-base call readTextFile README.md          run one tool from the shell
  perstack-base tools                                the tools that a client will see
  perstack-base doctor                               what the kernel enforces here`

// rootCommand builds the command tree for one command line. Bare, it serves.
func rootCommand(args ...string) *cobra.Command {
	o := &options{}
	var showVersion bool
	root := &cobra.Command{
		Use:           "perstack-base",
		Short:         "Tools for an agent inside one directory, over MCP",
		Long:          about,
		Example:       examples,
		Args:          noArguments,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		warnMisspelt(cmd.ErrOrStderr(), root.PersistentFlags())
		return applyEnvironment(root.PersistentFlags())
	}
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if showVersion {
			return printVersion(cmd.OutOrStdout())
		}
		return serve(cmd.Context(), o)
	}
	root.Flags().SortFlags, root.PersistentFlags().SortFlags = false, false
	o.register(root.PersistentFlags())
	root.Flags().BoolVar(&showVersion, "version", false, "print the version and exit")
	root.SetHelpFunc(help)
	root.SetUsageFunc(func(cmd *cobra.Command) error { help(cmd, nil); return nil })
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(serveCommand(o), toolsCommand(o), callCommand(o), skillsCommand(o), doctorCommand(o), healthcheckCommand(o), cacheCommand(o), versionCommand(), insideCommand(), runnerCommand())
	root.SetArgs(args)
	if root.CompletionOptions.DisableDefaultCmd = serves(args); !serves(args) {
		completeFlags(root)
	}
	return root
}
