package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/server"
)

// options are the flags that all subcommands share.
type options struct {
	cfg      server.Config // as far as flags set its fields as they are
	sandbox  string
	logLevel string
	logFile  string
	verbose  bool
	web      web
}

// The words that flags of few choices take.
var (
	sandboxModes = []string{string(process.Auto), string(process.Strict), string(process.Landlock), string(process.Isolate), string(process.Off)}
	networkModes = []string{"deny", "allow"}
	logLevels    = []string{"debug", "info", "warn", "error"}
)

// register adds the shared flags, in the groups and the order in which --help shows them.
func (o *options) register(f *pflag.FlagSet) {
	inGroup(f, "What is served", o.registerServed)
	inGroup(f, "Commands", o.registerCommands)
	inGroup(f, "Skills", o.registerSkills)
	inGroup(f, "Serving over HTTP", o.web.register)
	inGroup(f, "Log", o.registerLog)
}

func (o *options) registerServed(f *pflag.FlagSet) {
	pathFlag(f, &o.cfg.Workspace, "workspace", "DIR", "serve DIR instead of the current directory")
	f.StringSliceVar(&o.cfg.Tools, "tools", nil, "list these tools: `LIST` has PROFILE, PROFILE.TOOL, -PROFILE.TOOL (leave it out) or all, separated by commas (default perstack, and skills while there is a skill)")
	f.BoolVar(&o.cfg.ReadOnly, "read-only", false, "leave out every tool that changes files or runs commands")
	sizeFlag(f, &o.cfg.MaxOutput, "max-output", minOutput, fmt.Sprintf("bytes of text in one result, at least %d (default: what each profile sets)", minOutput))
}

func (o *options) registerCommands(f *pflag.FlagSet) {
	timeFlag(f, &o.cfg.Timeout, "timeout", server.MinTimeout, "", "end a command that sets no timeout of its own after this time, as in 90s (default: what each tool sets)")
	o.cfg.TaskAfter, o.cfg.TaskTTL = server.DefaultTaskAfter, server.DefaultTaskTTL
	timeFlag(f, &o.cfg.TaskAfter, "task-after", 0, "10s", "turn a call into a task when its command runs longer, where the client takes tasks; 0 = at once")
	timeFlag(f, &o.cfg.TaskTTL, "task-ttl", time.Second, "1h", "keep the result of a task for this time")
	imageFlag(f, &o.cfg.Container.Image, "container", "run commands in a container of this `IMAGE`, one for each session; file tools stay outside, on the same workspace")
	f.StringVar(&o.cfg.Container.Engine, "container-engine", process.DefaultEngine, "run containers with this `COMMAND`: docker, podman, nerdctl or a path")
	choiceFlag(f, &o.sandbox, "sandbox", "MODE", sandboxModes, string(process.Auto), "how commands are confined: auto (in namespaces, else by Landlock, else not), strict (in namespaces, else by Landlock, else commands are refused), landlock (by Landlock, or commands are refused), isolate (in namespaces, with the workspace guarded, or commands are refused) or off")
	networkFlag(f, &o.cfg.Network, "network", "what of the network commands can use: deny, allow, or a list of what they reach, over TCP and nothing else: NAME and *.NAME (ports 80 and 443), NAME:PORT, NAME:*, addresses and networks, and -NAME, which they never reach")
	pathsFlag(f, &o.cfg.AllowRead, "allow-read", "PATHS", true, "let commands read these paths, too")
	pathsFlag(f, &o.cfg.AllowWrite, "allow-write", "PATHS", true, "let commands read and write these paths, too")
	quotaFlags(f, &o.cfg.Quota)
	f.BoolVar(&o.cfg.NoCache, "no-cache", false, "remove what build tools keep for later with the session; see perstack-base cache")
	f.StringSliceVar(&o.cfg.PassEnv, "pass-env", nil, "let commands see these variables although their names look like secrets; `NAMES` may contain *")
}

func (o *options) registerSkills(f *pflag.FlagSet) {
	pathsFlag(f, &o.cfg.Skills, "skills", "DIR", false, "look for skills in DIR, too, and trust them; repeat the flag for more directories")
	f.BoolVar(&o.cfg.NoDiscover, "no-discover", false, "look for skills in --skills alone, not in skills, .agents/skills and ~/.agents/skills")
}

func (o *options) registerLog(f *pflag.FlagSet) {
	choiceFlag(f, &o.logLevel, "log-level", "LEVEL", logLevels, "warn", "log to standard error from this level on: debug, info, warn or error")
	pathFlag(f, &o.logFile, "log-file", "FILE", "append one JSON line for each call and connection of commands to FILE: tool or host, duration, outcome, bytes; FILE must lie where commands cannot write")
	pathFlag(f, &o.cfg.TraceFile, "trace-file", "FILE", "append a span of OpenTelemetry, a line of OTLP/JSON, for each request, command and stretch of a skill's run to FILE, which must lie where commands cannot write")
	f.BoolVar(&o.verbose, "verbose", false, "the same as --log-level info")
}

// config turns the flags into what the server takes. end writes the last lines of the log.
func (o *options) config() (cfg server.Config, end func(), err error) {
	cfg = o.cfg
	cfg.Sandbox, cfg.Version, cfg.Skills = process.Mode(o.sandbox), buildVersion(), o.skillDirs()
	if cfg.TaskAfter == 0 {
		cfg.TaskAfter = -1 // zero is the default there
	}
	if cfg.AllowRead, err = absolute("--allow-read", cfg.AllowRead); err != nil {
		return cfg, nil, err
	}
	if cfg.AllowWrite, err = absolute("--allow-write", cfg.AllowWrite); err != nil {
		return cfg, nil, err
	}
	if cfg.HTTP, err = o.web.config(); err != nil {
		return cfg, nil, err
	}
	cfg.Log, end, err = o.logger()
	return cfg, end, err
}

// skillDirs are the directories of --skills, and behind them $SKILLS_ROOT, by which
// users of trpc-agent-go name theirs.
func (o *options) skillDirs() []string {
	if root := os.Getenv("SKILLS_ROOT"); root != "" {
		return append(slices.Clone(o.cfg.Skills), root)
	}
	return o.cfg.Skills
}

// absolute makes paths absolute. One that does not exist would permit nothing
// and say nothing, so it is an error.
func absolute(flag string, paths []string) (out []string, err error) {
	for _, path := range paths {
		path, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s %s: there is no such file or directory, so it would permit nothing", flag, path)
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		out = append(out, path)
	}
	return out, nil
}

// minOutput is the least result that can still say what was cut.
const minOutput = 256
