package main

import (
	"github.com/spf13/cobra"

	"github.com/perstack-ai/perstack-base/sandbox/process"
)

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
