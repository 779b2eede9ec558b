package main

import (
	"github.com/spf13/cobra"
)

const about = `perstack-base gives an MCP client the hands of an agent inside one directory:
read, write, edit, run, and a todo list, with walls that the kernel enforces.

Started bare, or as serve, it speaks MCP on standard input and output and serves
the current directory; with --transport http it serves many clients over HTTP.
Every flag can also be set by an environment variable: --max-output is
PERSTACK_BASE_MAX_OUTPUT.`

const examples = `  perstack-base                                      serve the current directory
  perstack-base --workspace ~/project --read-only    look, but do not touch
  perstack-base call readTextFile path=README.md     run one tool from the shell
  perstack-base tools                                what a client will see
  perstack-base doctor                               what the kernel enforces here`

// rootCommand builds the command tree. Bare, it serves.
func rootCommand() *cobra.Command {
	o := &options{}
	root := &cobra.Command{
		Use:           "perstack-base",
		Short:         "An agent's hands inside one directory, over MCP",
		Long:          about,
		Example:       examples,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return applyEnvironment(cmd.Flags())
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return serve(cmd.Context(), o) },
	}
	o.register(root.PersistentFlags())
	root.AddCommand(serveCommand(o), toolsCommand(o), callCommand(o), skillsCommand(o), doctorCommand(o), healthcheckCommand(o), cacheCommand(o), versionCommand())
	return root
}
