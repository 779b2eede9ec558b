package home

import (
	"os"
	"path"
	"path/filepath"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"github.com/perstack-ai/perstack-base/sandbox/internal/settings"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/environ"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/private"
)

// CleanCargoConfigs are the settings of cargo that hold no secret. Cargo gives up
// where it may not read them, and looks for them above the workspace as well, which
// mostly lies below HOME.
func CleanCargoConfigs(p policy.Policy, home string) (paths []string) {
	for _, name := range []string{"config.toml", "config"} {
		file := filepath.Join(home, ".cargo", name)
		text, ok := environ.ReadHost(p, file)
		if copied, _ := settings.Cargo(string(text)); ok && copied == string(text) {
			paths = append(paths, file)
		}
	}
	return paths
}

// cargoHome gives cargo a home of its own beside the copied settings: it locks and
// notes things there. Packages are found where the user has downloaded them or, with
// a network, kept in the cache.
func (u User) cargoHome(d *private.Dir, home string, env []string) map[string]string {
	own := filepath.Join(home, ".cargo")
	if value, ok := environ.Get(env, "CARGO_HOME"); ok {
		own = value
	}
	packages := own
	if !u.Host.Network.Closed() {
		packages = ""
		if d.Cache != "" {
			packages = filepath.Join(d.Cache, "cargo")
		}
	}
	if environ.WritableValue(env, "CARGO_HOME", u.Host.Writable) {
		return nil
	}
	for _, part := range []string{"registry", "git"} {
		if !u.Host.Network.Closed() && packages != "" {
			makeInCache(d.Cache, path.Join("cargo", part))
		}
		if target := filepath.Join(packages, part); packages != "" && isDir(target) {
			d.Keep(path.Join(".cargo", part), func(name string) error { return d.Root.Symlink(target, name) })
		}
	}
	return map[string]string{"CARGO_HOME": filepath.Join(d.Home(), ".cargo")}
}

// makeInCache makes a directory in the cache, in which commands write.
func makeInCache(cache, dir string) {
	if root, err := os.OpenRoot(cache); err == nil {
		_ = root.MkdirAll(dir, 0o700)
		root.Close()
	}
}
