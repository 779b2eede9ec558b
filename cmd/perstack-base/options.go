package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/server"
)

// options are the flags that all subcommands share.
type options struct {
	workspace  string
	tools      []string
	skills     []string
	noDiscover bool
	readOnly   bool
	maxOutput  int
	timeout    time.Duration
	passEnv    []string
	sandbox    string
	network    string
	allow      struct{ read, write []string }
	logLevel   string
	logFile    string
	verbose    bool
	web        web
}

// envPrefix begins the environment twin of every flag.
const envPrefix = "PERSTACK_BASE_"

func (o *options) register(f *pflag.FlagSet) {
	f.StringVar(&o.workspace, "workspace", "", "serve `DIR` instead of the current directory")
	f.StringSliceVar(&o.tools, "tools", nil, "`LIST` of PROFILE, PROFILE.TOOL, -PROFILE.TOOL (default perstack, and skills when there are any)")
	f.BoolVar(&o.readOnly, "read-only", false, "leave out every tool that changes files or runs commands")
	f.IntVar(&o.maxOutput, "max-output", 0, "`BYTES` of text in one result (default: as each profile says)")
	f.DurationVar(&o.timeout, "timeout", 0, "end commands that set no timeout after this `TIME`, as in 90s (default: as each profile says)")
	f.StringSliceVar(&o.passEnv, "pass-env", nil, "let commands see variables that look like secrets; `NAMES` may hold *")
	f.StringArrayVar(&o.skills, "skills", nil, "look for trusted skills in `DIR`; repeat for more")
	f.BoolVar(&o.noDiscover, "no-discover", false, "do not look for skills in skills, .agents/skills and ~/.agents/skills")
	f.StringVar(&o.sandbox, "sandbox", string(sandbox.Auto), "confine commands: auto = by the kernel where it can, strict = or refuse them, landlock = by Landlock or refuse them, isolate = in namespaces of their own or refuse them, off = not (`MODE`)")
	f.StringVar(&o.network, "network", "deny", "let commands use the network: `deny` or allow")
	f.StringSliceVar(&o.allow.read, "allow-read", nil, "let commands read these `PATHS` too")
	f.StringSliceVar(&o.allow.write, "allow-write", nil, "let commands write these `PATHS` too")
	f.StringVar(&o.logLevel, "log-level", "", "log to standard error from this `LEVEL` on: debug, info, warn, error (default warn)")
	f.StringVar(&o.logFile, "log-file", "", "append a JSON line for each call to `FILE`: tool, duration, outcome, bytes")
	f.BoolVar(&o.verbose, "verbose", false, "same as --log-level info")
	o.web.register(f)
}

// applyEnvironment sets every flag that the command line left alone from its
// environment twin.
func applyEnvironment(flags *pflag.FlagSet) error {
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		name := envName(f.Name)
		value, ok := os.LookupEnv(name)
		if f.Changed || !ok || err != nil || f.Name == "help" {
			return
		}
		if setErr := flags.Set(f.Name, value); setErr != nil {
			err = fmt.Errorf("%s=%q: %w", name, value, setErr)
		}
	})
	return err
}

func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// config turns the flags into what the server takes. end closes the log file.
func (o *options) config() (cfg server.Config, end func(), err error) {
	if o.maxOutput < 0 || (o.maxOutput > 0 && o.maxOutput < minOutput) {
		return cfg, nil, fmt.Errorf("--max-output must be at least %d bytes", minOutput)
	}
	if o.timeout < 0 {
		return cfg, nil, fmt.Errorf("--timeout must not be negative")
	}
	if cfg, err = o.confinement(); err != nil {
		return cfg, nil, err
	}
	http, err := o.web.config()
	if err != nil {
		return cfg, nil, err
	}
	log, end, err := o.logger()
	return server.Config{
		Sandbox: cfg.Sandbox, Network: cfg.Network, AllowRead: cfg.AllowRead, AllowWrite: cfg.AllowWrite,
		Workspace: o.workspace, Tools: o.tools, ReadOnly: o.readOnly, MaxOutput: o.maxOutput,
		Timeout: o.timeout, PassEnv: o.passEnv, Version: buildVersion(), Log: log, HTTP: http,
		Skills: o.skills, NoDiscover: o.noDiscover,
	}, end, err
}

// confinement reads the flags about commands.
func (o *options) confinement() (cfg server.Config, err error) {
	cfg.Sandbox = sandbox.Mode(o.sandbox)
	if !slices.Contains(sandbox.Modes, cfg.Sandbox) {
		return cfg, fmt.Errorf("--sandbox %s: must be auto, strict, landlock, isolate or off", o.sandbox)
	}
	if o.network != "deny" && o.network != "allow" {
		return cfg, fmt.Errorf("--network %s: must be deny or allow", o.network)
	}
	cfg.Network = o.network == "allow"
	if cfg.AllowRead, err = absolute("--allow-read", o.allow.read); err != nil {
		return cfg, err
	}
	cfg.AllowWrite, err = absolute("--allow-write", o.allow.write)
	return cfg, err
}

// absolute makes paths absolute. One that is not there would permit nothing,
// without a word, so it is an error.
func absolute(flag string, paths []string) (out []string, err error) {
	for _, path := range paths {
		path, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		out = append(out, path)
	}
	return out, nil
}

// minOutput is the least result that can still say what was cut.
const minOutput = 256

// logger writes warnings to standard error, and with --log-file one JSON line for
// each call and everything else to that file.
func (o *options) logger() (*slog.Logger, func(), error) {
	level := slog.LevelWarn
	if o.verbose {
		level = slog.LevelInfo
	}
	if o.logLevel != "" {
		if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
			return nil, nil, fmt.Errorf("--log-level %s: must be debug, info, warn or error", o.logLevel)
		}
	}
	text := slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})
	if o.logFile == "" {
		return slog.New(text), func() {}, nil
	}
	file, err := os.OpenFile(o.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("--log-file: %w", err)
	}
	lines := slog.NewJSONHandler(file, &slog.HandlerOptions{Level: min(level, slog.LevelInfo)})
	return slog.New(slog.NewMultiHandler(text, lines)), func() { file.Close() }, nil
}
