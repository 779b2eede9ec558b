package sandbox

import (
	"os"
	"os/user"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"
)

// What a name must not contain or begin with to be passed on to commands.
var (
	secretWords    = []string{"KEY", "TOKEN", "SECRET", "PASSW", "CREDENTIAL", "AUTH"}
	secretPrefixes = []string{"AWS_", "PERSTACK_BASE_"}
)

// looksSecret reports whether an environment name looks like a secret's, in any case.
func looksSecret(name string) bool {
	name = strings.ToUpper(name)
	contains := func(word string) bool { return strings.Contains(name, word) }
	begins := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	return slices.ContainsFunc(secretWords, contains) || slices.ContainsFunc(secretPrefixes, begins)
}

// withheld reports whether the host's variable stays with the host. Patterns
// are shell patterns over whole names.
func withheld(name string, pass []string) bool {
	return looksSecret(name) && !slices.ContainsFunc(pass, func(pattern string) bool {
		ok, _ := path.Match(pattern, name)
		return ok || pattern == name
	})
}

// FilterEnv returns env without the variables that commands do not get.
func FilterEnv(env, pass []string) []string {
	kept := make([]string, 0, len(env)+8)
	for _, entry := range env {
		if name, _, ok := strings.Cut(entry, "="); ok && !withheld(name, pass) {
			kept = append(kept, entry)
		}
	}
	return kept
}

// WithheldNames lists the names in env that FilterEnv takes out, sorted, never their values.
func WithheldNames(env, pass []string) []string {
	var names []string
	for _, entry := range env {
		if name, _, ok := strings.Cut(entry, "="); ok && withheld(name, pass) {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return slices.Compact(names)
}

// proxies are of no use, and may carry a password, where there is no network.
var proxies = []string{"http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy",
	"HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY"}

// hostEnv is the environment that every command of a server starts from.
func hostEnv(cfg Config, confined bool) []string {
	base := FilterEnv(cfg.Env, cfg.PassEnv)
	if confined && !cfg.Network {
		base = slices.DeleteFunc(base, func(entry string) bool {
			name, _, _ := strings.Cut(entry, "=")
			return slices.Contains(proxies, name)
		})
	}
	base = addUser(base)
	if confined { // HOME is private then
		base = addToolHomes(addGitConfig(base), cfg.Network)
	}
	return base
}

// addUser sets USER and LOGNAME where the host has none.
func addUser(env []string) []string {
	name, ok := getenv(env, "USER")
	if !ok {
		name, ok = getenv(env, "LOGNAME")
	}
	if !ok {
		me, err := user.Current()
		if err != nil {
			return env
		}
		name = me.Username
	}
	for _, key := range []string{"USER", "LOGNAME"} {
		if _, ok := getenv(env, key); !ok {
			env = append(env, key+"="+name)
		}
	}
	return env
}

// addGitConfig lets git find the user's own settings although HOME is private.
func addGitConfig(env []string) []string {
	home, _ := getenv(env, "HOME")
	if _, set := getenv(env, "GIT_CONFIG_GLOBAL"); set || home == "" {
		return env
	}
	file := filepath.Join(home, ".gitconfig")
	if _, err := os.Stat(file); err != nil {
		return env
	}
	return append(env, "GIT_CONFIG_GLOBAL="+file)
}

// toolHomes are what toolchains keep below the user's HOME and find through a
// variable when HOME is private. A cache is read only, so with a network, where
// it can be filled anew, the private one serves.
var toolHomes = []struct {
	name, dir string
	cache     bool
}{
	{"GOMODCACHE", "go/pkg/mod", true},
	{"npm_config_cache", ".npm", true},
	{"CARGO_HOME", ".cargo", true},
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
	home, _ := getenv(env, "HOME")
	if home == "" {
		return env
	}
	for _, tool := range toolHomes {
		dir := filepath.Join(home, tool.dir)
		_, set := getenv(env, tool.name)
		if set || tool.cache && network {
			continue
		}
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			env = append(env, tool.name+"="+dir)
		}
	}
	return env
}

// dropEnv returns env without the named variables.
func dropEnv(env, names []string) []string {
	if len(names) == 0 {
		return env
	}
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(names, name)
	})
}

// mergeEnv returns base with the variables of set added or replaced.
func mergeEnv(base []string, set map[string]string) []string {
	if len(set) == 0 {
		return base
	}
	env := make([]string, 0, len(base)+len(set))
	for _, entry := range base {
		name, _, _ := strings.Cut(entry, "=")
		if _, replaced := set[name]; !replaced {
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
