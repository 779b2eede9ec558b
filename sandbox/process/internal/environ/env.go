package environ

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/internal/lazyregexp"
	"github.com/perstack-ai/perstack-base/sandbox/internal/network"
)

// A Host is the machine as far as it decides what environment commands get.
type Host struct {
	Env      []string       // the server's
	Pass     []string       // shell patterns of names that are passed on although they look secret
	Network  network.Access // what of the network commands may use
	Writable []string       // where commands may write

	// Reach opens a file of the user's, unless commands could put another in its place; nil
	// opens none. See [policy.Policy.Reach].
	Reach func(path string) (*os.File, error)

	// Safe reports whether no command can decide what a directory of the user's is; nil
	// takes none for one. See [policy.Policy.Safe].
	Safe func(dir string) bool
}

// safe reports whether a directory may be listed for commands.
func (h Host) safe(dir string) bool { return h.Safe != nil && h.Safe(dir) }

// Filter returns env without the variables that commands do not get.
func Filter(env, pass []string) []string {
	kept := make([]string, 0, len(env)+8)
	for _, entry := range env {
		if name, value, ok := strings.Cut(entry, "="); ok && !Withheld(name, value, pass) {
			kept = append(kept, entry)
		}
	}
	return kept
}

// WithheldNames lists the names in env that filterEnv takes out, sorted, never their values.
func WithheldNames(env, pass []string) []string {
	var names []string
	for _, entry := range env {
		if name, value, ok := strings.Cut(entry, "="); ok && Withheld(name, value, pass) {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return slices.Compact(names)
}

// proxyName is a variable that names a proxy, as in https_proxy or npm_config_proxy.
// They may carry a password. They are of no use where there is no network, and lead
// around rules where it has some.
var proxyName = lazyregexp.New(`(?i)^(?:.*_proxy|npm_config_.*proxy)$`)

// ProxySetting is a line by which git, npm, pip or cargo is told of a proxy.
var ProxySetting = lazyregexp.New(`(?im)^[ \t]*["']?(?:http\.)?(?:https?-)?proxy["']?[ \t]*[=:].*\n?`)

// noNetwork tells tools that there is no network, so that they fail at once
// instead of trying again, and do not ask for what nobody needs.
var noNetwork = []string{
	"npm_config_fetch_retries=0", "npm_config_audit=false", "npm_config_fund=false", "npm_config_update_notifier=false",
	"PIP_RETRIES=0", "PIP_DISABLE_PIP_VERSION_CHECK=1", "UV_HTTP_RETRIES=0", "CARGO_NET_RETRY=0",
	"pnpm_config_fetch_retries=0", "YARN_HTTP_RETRY=0", "YARN_ENABLE_TELEMETRY=0", "COREPACK_ENABLE_NETWORK=0",
	"BUNDLE_RETRY=0", "GIT_TERMINAL_PROMPT=0",
}

// fewRetries has tools that ask for a name which no rule permits give up within a few
// seconds. A try or two more are for what is permitted, and fails for once.
var fewRetries = []string{
	"npm_config_fetch_retry_mintimeout=200", "npm_config_fetch_retry_maxtimeout=1000", "npm_config_update_notifier=false",
	"pnpm_config_fetch_retry_mintimeout=200", "pnpm_config_fetch_retry_maxtimeout=1000",
	"PIP_RETRIES=2", "PIP_DISABLE_PIP_VERSION_CHECK=1", "UV_HTTP_RETRIES=1", "CARGO_NET_RETRY=1",
	"YARN_HTTP_RETRY=1", "YARN_ENABLE_TELEMETRY=0", "BUNDLE_RETRY=1", "GIT_TERMINAL_PROMPT=0",
}

// AddMissing adds the variables that env does not have, in any case.
func AddMissing(env, more []string) []string {
	for _, entry := range more {
		name, _, _ := strings.Cut(entry, "=")
		if !slices.ContainsFunc(env, func(has string) bool {
			set, _, _ := strings.Cut(has, "=")
			return strings.EqualFold(set, name)
		}) {
			env = append(env, entry)
		}
	}
	return env
}

// ForCommands is the environment that every command of a server starts from.
func ForCommands(h Host, confined bool) []string {
	base := Filter(h.Env, h.Pass)
	if confined && !h.Network.Open() {
		base = WithoutProxies(base)
	}
	base = addUser(base)
	if _, ok := Get(base, "HOME"); !ok && !confined {
		if home := userHome(); home != "" {
			base = append(base, "HOME="+home)
		}
	}
	if confined { // HOME is private then
		base = addToolHomes(base, !h.Network.Closed())
		switch {
		case h.Network.Closed():
			base = AddMissing(base, noNetwork)
		case !h.Network.Open():
			base = AddMissing(base, fewRetries)
		}
	}
	return base
}

// WithoutProxies takes the variables that name proxies out of env.
func WithoutProxies(env []string) []string {
	return slices.DeleteFunc(env, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return proxyName.MatchString(name)
	})
}

// addUser sets who the user is where the host does not say it.
func addUser(env []string) []string {
	name := UserName(env)
	for _, entry := range []string{"USER=" + name, "LOGNAME=" + name, "SHELL=/bin/sh"} {
		key, _, _ := strings.Cut(entry, "=")
		if _, ok := Get(env, key); !ok && (key != "SHELL" || runtime.GOOS != "windows") {
			env = append(env, entry)
		}
	}
	return env
}

// toolHomes are what toolchains keep below the user's HOME and find through a
// variable when HOME is private. A cache is read only, so with a network, where
// it can be filled anew, the private one serves.
var toolHomes = []struct {
	name, dir string
	cache     bool
}{
	{"GOMODCACHE", "go/pkg/mod", true},
	{"RUSTUP_HOME", ".rustup", false},
	{"PYENV_ROOT", ".pyenv", false},
	{"RBENV_ROOT", ".rbenv", false},
	{"NVM_DIR", ".nvm", false},
	{"VOLTA_HOME", ".volta", false},
	{"ASDF_DATA_DIR", ".asdf", false},
	{"MISE_DATA_DIR", ".local/share/mise", false},
}

// addToolHomes names those that exist and that the host's variables do not name.
func addToolHomes(env []string, network bool) []string {
	home, _ := Get(env, "HOME")
	if home == "" {
		return env
	}
	for _, tool := range toolHomes {
		dir := filepath.Join(home, tool.dir)
		_, set := Get(env, tool.name)
		if set || tool.cache && network {
			continue
		}
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			env = append(env, tool.name+"="+dir)
		}
	}
	return env
}

// Drop returns env without the named variables.
func Drop(env, names []string) []string {
	if len(names) == 0 {
		return env
	}
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(names, func(drop string) bool { return foldName(drop) == foldName(name) })
	})
}

// foldName is a variable's name as the system compares it: on Windows PATH is often called Path.
func foldName(name string) string {
	if runtime.GOOS == "windows" {
		return strings.ToUpper(name)
	}
	return name
}

// Keep returns the named variables of env; all of it where nil names them.
func Keep(env, names []string) []string {
	if names == nil {
		return env
	}
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !slices.ContainsFunc(names, func(kept string) bool { return foldName(kept) == foldName(name) })
	})
}

// Merge returns base with the variables of set added or replaced.
func Merge(base []string, set map[string]string) []string {
	if len(set) == 0 {
		return base
	}
	replaced := make(map[string]bool, len(set))
	for name := range set {
		replaced[foldName(name)] = true
	}
	env := make([]string, 0, len(base)+len(set))
	for _, entry := range base {
		name, _, _ := strings.Cut(entry, "=")
		if !replaced[foldName(name)] {
			env = append(env, entry)
		}
	}
	at := len(env)
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	sort.Strings(env[at:])
	return env
}
