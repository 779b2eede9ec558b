package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/perstack-ai/perstack-base/sandbox/process"
)

// networkFlag takes deny, allow, or rules. Given again, rules add to those that are there.
func networkFlag(f *pflag.FlagSet, p *process.Network, name, usage string) {
	given := ""
	v := &setting{placeholder: "LIST", text: p.String()}
	v.parse = func(text string) error {
		if err := mistaken(text); err != nil {
			return err
		}
		if given != "" && !slices.Contains(networkModes, strings.TrimSpace(text)) {
			text = given + "," + text
		}
		parsed, err := process.ParseNetwork(text)
		if err != nil {
			return fmt.Errorf("must be %s or rules: %w", strings.Join(networkModes, ", "), err)
		}
		if *p = parsed; len(parsed.Rules()) > 0 {
			given = text
		} else {
			given = ""
		}
		return nil
	}
	f.Var(v, name, usage)
}

// notNames are words that somebody means as a mode. They could be names of hosts.
var notNames = []string{"on", "off", "true", "false", "yes", "no", "none", "all", "any", "open", "opened", "close", "closed", "host", "0", "1"}

// mistaken refuses a word that is nearly a mode.
func mistaken(text string) error {
	word := strings.ToLower(strings.TrimSpace(text))
	if slices.Contains(networkModes, strings.TrimSpace(text)) || !oneWord.MatchString(word) {
		return nil
	}
	if near := didYouMean(word, networkModes); near != "" || slices.Contains(notNames, word) {
		return fmt.Errorf("must be %s or rules, as in registry.npmjs.org,10.20.0.0/16:5432%s (for a host of that name write %s:80,%[3]s:443)", strings.Join(networkModes, ", "), near, word)
	}
	return nil
}

var oneWord = regexp.MustCompile(`^[\w-]+$`)
