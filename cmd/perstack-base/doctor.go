package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perstack-ai/perstack-base/cmd/perstack-base/internal/doctor"
	"github.com/perstack-ai/perstack-base/sandbox/process"
)

func doctorCommand(o *options) *cobra.Command {
	var asJSON bool
	var target string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Try out what is enforced here, and tell what is not and what to do",
		Long: `Try out what the sandbox promises on this machine, with these flags: a process outside makes each
forbidden call and must succeed, a confined one makes it and must fail. Only what was tried is
claimed. Then come the paths that commands may reach, each with the reason, and those that are left
out. Exit code 1 means that something is not enforced.

With --container, a container is made as for a session, and what it has is shown.

With --reach, a command connects to HOST:PORT instead, confined like every other, and the verdict is
explained. Exit code 1 means that it was not reached.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, end, err := open(o)
			if err != nil {
				return err
			}
			defer end()
			var ok bool
			if target != "" {
				var command process.Command
				if command, err = connectCommand(cmd, target); err == nil {
					ok, err = doctor.Reach(cmd.Context(), cmd.OutOrStdout(), s, target, command, asJSON)
				}
			} else {
				flags := doctor.Flags{Sandbox: o.sandbox, Image: o.cfg.Container.Image, Network: o.cfg.Network, JSON: asJSON}
				ok, err = doctor.Examine(cmd.Context(), cmd.OutOrStdout(), s, flags)
			}
			if err != nil || !ok {
				return failure{err}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	cmd.Flags().Var(&setting{"HOST:PORT", "", func(text string) error {
		target = text
		return doctor.CheckTarget(text)
	}}, "reach", "have a command connect there, and explain whether it can")
	return cmd
}

// insideCommand connects from where it is. Doctor runs it as a command of a session.
func insideCommand() *cobra.Command {
	return &cobra.Command{
		Use: insideName + " HOST:PORT", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := doctor.Connect(cmd.Context(), cmd.OutOrStdout(), args[0]); err != nil {
				return failure{err}
			}
			return nil
		},
	}
}

const insideName = "connect-from-inside"

// connectCommand is this program as a command that connects to a target.
func connectCommand(cmd *cobra.Command, target string) (c process.Command, err error) {
	program, err := os.Executable()
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	return process.Command{Name: program, Args: []string{insideName, "--", target}, Read: []string{program}, Env: withoutFlags(cmd)}, err
}

// withoutFlags takes the variables that set flags away from the command that tries:
// they concern the server.
func withoutFlags(cmd *cobra.Command) map[string]string {
	empty := map[string]string{}
	cmd.Root().PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if os.Getenv(envName(f.Name)) != "" {
			empty[envName(f.Name)] = ""
		}
	})
	return empty
}
