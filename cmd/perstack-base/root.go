package main

import (
	"github.com/spf13/cobra"
)

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

// rootCommand builds the command tree. Bare, it serves.
func rootCommand() *cobra.Command {
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
	completeFlags(root)
	return root
}
