package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// envPrefix begins the name of the environment variable that sets a flag.
const envPrefix = "PERSTACK_BASE_"

// envName is the variable that sets a flag.
func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// applyEnvironment sets every shared flag that the command line left alone from
// its variable. The flags of one subcommand have none.
func applyEnvironment(shared *pflag.FlagSet) error {
	var err error
	shared.VisitAll(func(f *pflag.Flag) {
		name := envName(f.Name)
		value, ok := os.LookupEnv(name)
		if f.Changed || !ok || err != nil {
			return
		}
		if setErr := setFromEnvironment(shared, f, value); setErr != nil {
			err = fmt.Errorf("%s=%q: %w", name, value, wanted(f, setErr))
		}
	})
	return err
}

func setFromEnvironment(flags *pflag.FlagSet, f *pflag.Flag, value string) error {
	if list, ok := f.Value.(*pathList); ok {
		f.Changed = true
		return list.setFromEnvironment(value)
	}
	return flags.Set(f.Name, value)
}
