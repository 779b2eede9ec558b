package sandbox

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine"
)

// Cargo gives up when there is a config.toml in its home that it may not read. As
// people keep tokens in theirs, a session gets a home for cargo with what is none.

// cargoConfigs are the names that it may have.
var cargoConfigs = []string{"config.toml", "config"}

// hasCargoConfig reports whether the user who is at home there has one.
func hasCargoConfig(home string) bool {
	return exists(filepath.Join(home, ".cargo", cargoConfigs[0])) || exists(filepath.Join(home, ".cargo", cargoConfigs[1]))
}

// layCargo copies the settings, and links the packages downloaded before unless
// there is a network, where the private ones can be filled anew.
func (d *sessionDir) layCargo(policy confine.Policy, home string, network bool) {
	host, own := filepath.Join(home, ".cargo"), filepath.Join("home", ".cargo")
	if d.root.Mkdir(own, 0o700) != nil {
		return
	}
	for _, name := range cargoConfigs {
		if data, ok := readHost(policy, filepath.Join(host, name)); ok {
			_ = d.write(filepath.Join(own, name), settingsWithoutSecrets(data), 0o600)
		}
	}
	for _, name := range []string{"registry", "git"} {
		if dir := filepath.Join(host, name); !network && policy.Allows(dir, false) {
			_ = d.root.Symlink(dir, filepath.Join(own, name))
		}
	}
}

// cleanCargoConfigs are the settings that hold no secret. Cargo looks for them
// above the workspace as well, which mostly lies below HOME.
func cleanCargoConfigs(policy confine.Policy, home string) (paths []string) {
	for _, name := range cargoConfigs {
		path := filepath.Join(home, ".cargo", name)
		if data, ok := readHost(policy, path); ok && bytes.Equal(data, settingsWithoutSecrets(data)) {
			paths = append(paths, path)
		}
	}
	return paths
}

// setting finds keys of a TOML file.
var setting = regexp.MustCompile(`([A-Za-z0-9_-]+)["']?\s*=\s*([^,}]*)`)

// settingsWithoutSecrets leaves out the lines of a TOML file that set a secret.
func settingsWithoutSecrets(text []byte) []byte {
	var out bytes.Buffer
	for line := range strings.Lines(string(text)) {
		secret := false
		for _, m := range setting.FindAllStringSubmatch(line, -1) {
			secret = secret || looksSecret(m[1], m[2])
		}
		if !secret && !passwordInURL.MatchString(line) {
			out.WriteString(line)
		}
	}
	return out.Bytes()
}
