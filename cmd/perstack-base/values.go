package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/files"
	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/sandbox/process/quota"
	"github.com/perstack-ai/perstack-base/server"
)

// A setting is the value of a flag that says itself what it wants: parse stores
// a text, or returns an error that begins with "must be".
type setting struct {
	placeholder string // what --help calls the value
	text        string
	parse       func(text string) error
}

// Set implements [pflag.Value].
func (s *setting) Set(text string) error {
	if err := s.parse(text); err != nil {
		return err
	}
	s.text = text
	return nil
}

// String implements [pflag.Value].
func (s *setting) String() string { return s.text }

// Type implements [pflag.Value].
func (s *setting) Type() string { return s.placeholder }

// choiceFlag takes one of a few words.
func choiceFlag(f *pflag.FlagSet, p *string, name, placeholder string, choices []string, def, usage string) {
	*p = def
	f.Var(&setting{placeholder, def, func(text string) error {
		if !slices.Contains(choices, text) {
			return fmt.Errorf("must be %s%s", orList(choices), didYouMean(text, choices))
		}
		*p = text
		return nil
	}}, name, usage)
}

// imageFlag takes the name of an image. None at all would have commands run on this
// machine, where a script's variable was empty.
func imageFlag(f *pflag.FlagSet, p *string, name, usage string) {
	f.Var(&setting{"IMAGE", "", func(text string) error {
		if strings.TrimSpace(text) == "" {
			return errors.New("must be the name of an image, as in python:3.12-slim")
		}
		*p = text
		return nil
	}}, name, usage)
}

// pathFlag takes a path, in which ~/ is the home directory.
func pathFlag(f *pflag.FlagSet, p *string, name, placeholder, usage string) {
	f.Var(&setting{placeholder, "", func(text string) error {
		*p = expandHome(text)
		return nil
	}}, name, usage)
}

// sizeFlag takes a number of bytes.
func sizeFlag(f *pflag.FlagSet, p *int, name string, least int, usage string) {
	f.Var(&setting{"BYTES", "", func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("must be a number of bytes, as in %d", sandbox.DefaultLimits.OutputBytes)
		}
		if n < least {
			return fmt.Errorf("must be at least %d bytes", least)
		}
		*p = n
		return nil
	}}, name, usage)
}

// timeFlag takes a time of at least least, and of a day at most.
func timeFlag(f *pflag.FlagSet, p *time.Duration, name string, least time.Duration, def, usage string) {
	f.Var(&setting{"TIME", def, func(text string) error {
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("must be a time with its unit, as in 90s, 5m or 1h30m")
		}
		if d < least || d > server.MaxTimeout {
			return fmt.Errorf("must be from %v to %gh, as in 90s", least, server.MaxTimeout.Hours())
		}
		*p = d
		return nil
	}}, name, usage)
}

// A pathList is the value of a flag that takes several paths.
type pathList struct {
	paths       *[]string
	placeholder string
	split       bool // at commas; else each value is one path
}

// pathsFlag takes paths between commas, or several times one.
func pathsFlag(f *pflag.FlagSet, p *[]string, name, placeholder string, split bool, usage string) {
	f.Var(&pathList{p, placeholder, split}, name, usage)
}

// Set implements [pflag.Value]: it adds to what is there.
func (l *pathList) Set(text string) error {
	paths := []string{text}
	if l.split {
		var err error
		if paths, err = splitCommas(text); err != nil {
			return err
		}
	}
	l.add(paths)
	return nil
}

// setFromEnvironment takes a list as PATH has it, or between commas.
func (l *pathList) setFromEnvironment(text string) error {
	for _, part := range filepath.SplitList(text) {
		paths, err := splitCommas(part)
		if err != nil {
			return err
		}
		l.add(paths)
	}
	return nil
}

func (l *pathList) add(paths []string) {
	for _, path := range paths {
		if path = strings.TrimSpace(path); path != "" {
			*l.paths = append(*l.paths, expandHome(path))
		}
	}
}

// String implements [pflag.Value].
func (l *pathList) String() string {
	if l.paths == nil {
		return ""
	}
	return strings.Join(*l.paths, ",")
}

// Type implements [pflag.Value].
func (l *pathList) Type() string { return l.placeholder }

// splitCommas reads one line of comma separated values; one that contains a
// comma stands in double quotes.
func splitCommas(text string) ([]string, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	fields, err := csv.NewReader(strings.NewReader(text)).Read()
	if err != nil {
		return nil, fmt.Errorf("must be a list separated by commas: %w", err)
	}
	return fields, nil
}

// expandHome replaces a leading ~ by the home directory: the configuration of a
// client is read by no shell that would do it. ./~ is a file of that name.
func expandHome(path string) string {
	rest, ok := strings.CutPrefix(path, "~")
	home := files.HomeDir()
	if !ok || home == "" || rest != "" && !os.IsPathSeparator(rest[0]) {
		return path
	}
	return home + rest
}

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

// notNames are words that are meant as a mode. They could be names of hosts.
var notNames = []string{"on", "off", "true", "false", "yes", "no", "none", "all", "any", "open", "opened", "close", "closed", "host", "0", "1"}

// mistaken refuses a word that is nearly a mode.
func mistaken(text string) error {
	word := strings.ToLower(strings.TrimSpace(text))
	if slices.Contains(networkModes, strings.TrimSpace(text)) || !oneWord().MatchString(word) {
		return nil
	}
	if near := didYouMean(word, networkModes); near != "" || slices.Contains(notNames, word) {
		return fmt.Errorf("must be %s or rules, as in registry.npmjs.org,10.20.0.0/16:5432%s (for a host of that name write %s:80,%[3]s:443)", strings.Join(networkModes, ", "), near, word)
	}
	return nil
}

var oneWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\w-]+$`) })

// quotaFlags take what the commands of one session may use together.
func quotaFlags(f *pflag.FlagSet, q *quota.Limits) {
	f.Var(&setting{"SIZE", "", func(text string) error {
		size, err := quota.ParseSize(text)
		if err != nil || size < quota.MinMemory {
			return fmt.Errorf("must be a number of bytes, or of K, M, G or T (powers of 1024), at least %s, as in 512M or 2G", quota.SizeText(quota.MinMemory))
		}
		q.MaxMemory = size
		return nil
	}}, "max-memory", "end the commands of a session when they use more memory than this together, as in 512M or 2G (default: no limit)")
	f.Var(&setting{"N", "", func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > math.MaxInt32 {
			return fmt.Errorf("must be a number of processes from 1 to %d, as in 64", math.MaxInt32)
		}
		q.MaxProcesses = n
		return nil
	}}, "max-processes", fmt.Sprintf("let the commands of a session have this many processes and threads together (default %d, where the kernel counts them)", sandbox.DefaultLimits.Processes))
	f.Var(&setting{"N", "", func(text string) error {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !(n >= quota.MinCPUs && n <= quota.MaxCPUs) {
			return errors.New("must be a number of processors of at least " + strconv.FormatFloat(quota.MinCPUs, 'g', -1, 64) + ", as in 0.5 or 2")
		}
		q.MaxCPUs = n
		return nil
	}}, "max-cpus", "let the commands of a session use this much processor time together, in processors, as in 0.5 or 2 (default: no limit)")
}

// hinted has an error say what to do about it, too.
func hinted(err error) error {
	var hinter interface{ Hint() string }
	if errors.As(err, &hinter) && hinter.Hint() != "" {
		return fmt.Errorf("%w. %s", err, hinter.Hint())
	}
	return err
}
