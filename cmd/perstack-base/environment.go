package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/perstack-ai/perstack-base/server"
)

// envPrefix begins the name of the environment variable that sets a flag.
const envPrefix = "PERSTACK_BASE_"

// envName is the variable that sets a flag.
func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// applyEnvironment sets every shared flag that the command line left alone from
// its variable; an empty one counts as none, as compose files leave them. The flags
// of one subcommand have none.
func applyEnvironment(shared *pflag.FlagSet) error {
	var err error
	shared.VisitAll(func(f *pflag.Flag) {
		name := envName(f.Name)
		value := os.Getenv(name)
		if f.Changed || value == "" || err != nil {
			return
		}
		if setErr := setFromEnvironment(shared, f, value); setErr != nil {
			err = fmt.Errorf("%s=%q: %w", name, value, wanted(f, setErr))
		}
	})
	return err
}

// setFromEnvironment gives a flag the value of its variable. A list is separated as
// PATH is, or by commas; one of addresses, which have colons, by commas alone.
func setFromEnvironment(flags *pflag.FlagSet, f *pflag.Flag, value string) error {
	if list, ok := f.Value.(*pathList); ok {
		f.Changed = true
		return list.setFromEnvironment(value)
	}
	if f.Value.Type() == "stringSlice" && f.Name != "allow-host" && f.Name != "allow-origin" {
		value = strings.ReplaceAll(value, string(os.PathListSeparator), ",")
	}
	return flags.Set(f.Name, value)
}

// warnMisspelt names each variable that nearly is that of a flag: it would have no
// effect, unnoticed.
func warnMisspelt(w io.Writer, shared *pflag.FlagSet) {
	known := []string{strings.TrimPrefix(tokenEnv, envPrefix)}
	shared.VisitAll(func(f *pflag.Flag) { known = append(known, strings.TrimPrefix(envName(f.Name), envPrefix)) })
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		rest, ours := strings.CutPrefix(name, envPrefix)
		if !ours {
			continue // to compare each with every flag would take a quarter of the start
		}
		if near := server.Nearest(rest, known); near != "" && near != rest {
			fmt.Fprintf(w, "perstack-base: warning: %s has no effect; did you mean %s%s?\n", name, envPrefix, near)
		}
	}
}
