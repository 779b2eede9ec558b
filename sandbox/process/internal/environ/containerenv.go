package environ

import (
	"slices"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/internal/network"
)

// WithoutEnginesProxies takes out the proxies that engines add to an image's
// environment: those that lead around the rules for the network, and those that
// tell a password.
func WithoutEnginesProxies(env []string, access network.Access) []string {
	return slices.DeleteFunc(env, func(entry string) bool {
		name, value, _ := strings.Cut(entry, "=")
		return proxyName.MatchString(name) && (!access.Open() || passwordInURL.MatchString(value))
	})
}

// HostVariables are those of the host's that commands in a container get: what
// names no path there, for it would be another one in the container.
func HostVariables(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, value, _ := strings.Cut(entry, "=")
		return slices.Contains(hostsOwn, name) || NamesPath(value)
	})
}

// hostsOwn are variables that say something of the host, whatever their value.
var hostsOwn = []string{"PATH", "HOME", "PWD", "OLDPWD", "SHELL", "SHLVL", "_", "HOSTNAME", "HOST", "TMPDIR", "DISPLAY", "WAYLAND_DISPLAY", "DOCKER_HOST", "CONTAINER_HOST"}

// NamesPath reports whether a value, or what is between signs that separate values,
// begins as an absolute path or in the home directory. A URL names none, but for file:.
func NamesPath(value string) bool {
	for _, part := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(":;,= \t\n\"'", r) }) {
		if strings.HasPrefix(part, "~") || strings.HasPrefix(part, "/") && (!strings.HasPrefix(part, "//") || strings.HasPrefix(part, "///")) {
			return true
		}
	}
	return false
}

// ForContainer is what the environment of every command of a runner starts from.
func ForContainer(h Host) []string {
	env := addUser(slices.Clone(h.Env))
	if h.Network.Closed() {
		env = AddMissing(env, noNetwork)
	}
	return env
}
