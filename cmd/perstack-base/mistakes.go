package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perstack-ai/perstack-base/server"
)

// flagError words what is wrong with a flag: what was given, what is wanted,
// where to read on.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		name := unknown.GetSpecifiedName()
		near := server.Nearest(name, flagNames(cmd))
		if near != "" {
			near = "; did you mean --" + near + "?"
		}
		return fmt.Errorf("unknown flag --%s%s%s", name, near, seeHelp(cmd))
	case errors.As(err, &unknown) && cmd.Name() == "call":
		return fmt.Errorf("-%s is not a flag; arguments of a tool are KEY=VALUE, as in args='[\"-%[1]s\"]'%s", unknown.GetSpecifiedShortnames(), seeHelp(cmd))
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		return fmt.Errorf("--%s %s: %w", f.Name, invalid.GetValue(), wanted(f, err))
	case errors.As(err, &missing):
		f := missing.GetFlag()
		return fmt.Errorf("--%s needs a value: %s%s", f.Name, flagName(f), seeHelp(cmd))
	}
	return fmt.Errorf("%w%s", err, seeHelp(cmd))
}

// wanted is why a value was refused, in the flag's own words where it has some.
func wanted(f *pflag.Flag, err error) error {
	if f.Value.Type() == "bool" {
		return errors.New("must be true or false")
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		return invalid.Unwrap()
	}
	return err
}

func flagNames(cmd *cobra.Command) (names []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// noArguments refuses every argument. Of a command that has subcommands it is
// the name of one that does not exist.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	word := args[0]
	if !cmd.HasAvailableSubCommands() {
		return fmt.Errorf("%s takes no arguments, but %q was given%s", cmd.CommandPath(), word, seeHelp(cmd))
	}
	hint := didYouMean(word, commandNames(cmd))
	if hint == "" && !cmd.HasParent() && isTool(word) {
		hint = fmt.Sprintf("; it is a tool: %s call %s", cmd.CommandPath(), word)
	}
	return fmt.Errorf("unknown command %q%s%s", word, hint, seeHelp(cmd))
}

func commandNames(cmd *cobra.Command) (names []string) {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

func isTool(name string) bool {
	for _, p := range server.Profiles {
		if p.Tool(name) != nil {
			return true
		}
	}
	return false
}

func seeHelp(cmd *cobra.Command) string { return " (see " + cmd.CommandPath() + " --help)" }

// didYouMean is the end of a sentence that names what was perhaps meant.
func didYouMean(word string, candidates []string) string {
	if near := server.Nearest(word, candidates); near != "" {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	return ""
}

// orList joins words as in "deny or allow".
func orList(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
