package process

import (
	"os"
	"path/filepath"

	"github.com/perstack-ai/perstack-base/sandbox/internal/settings"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/environ"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/private"
	"github.com/perstack-ai/perstack-base/sandbox/scratch"
)

// equip makes a new session's HOME what tools expect of one: the user's settings
// without their secrets lie in it, and what tools keep for later goes to the cache of
// the workspace. It returns the environment that tells tools so.
func (c *Commands) equip(d *private.Dir, env []string) []string {
	home, _ := environ.Get(env, "HOME")
	if home == "" {
		return env
	}
	for _, f := range c.settings(home, d.Home()).Files {
		if len(c.cfg.Network.Rules()) > 0 {
			f.Text = environ.ProxySetting.ReplaceAllString(f.Text, "")
		}
		d.Keep(f.Name, func(name string) error { return d.Write(name, []byte(f.Text), 0o600) })
	}
	set := map[string]string{}
	if _, ok := environ.Get(env, "XDG_CONFIG_HOME"); ok {
		set["XDG_CONFIG_HOME"] = filepath.Join(d.Home(), ".config")
	}
	for name, dir := range map[string]string{"PYTHONUSERBASE": ".local", "PLAYWRIGHT_BROWSERS_PATH": ".cache/ms-playwright"} {
		if _, ok := environ.Get(env, name); !ok && isDir(filepath.Join(home, dir)) {
			set[name] = filepath.Join(home, dir)
		}
	}
	env = environ.Merge(env, set)
	if cache := c.cache(); cache != nil {
		d.Cache = cache.Dir()
		host := c.cfg.host()
		host.Reach, host.Safe = c.confinement.policy().Reach, c.confinement.policy().Safe
		env = environ.ForCache(cache.Dir(), env, host)
	}
	return environ.Merge(env, c.cargoHome(d, home, env))
}

// settings are the user's, for a private home directory.
func (c *Commands) settings(home, private string) settings.Collection {
	return settings.Collect(home, private, func(path string) string {
		text, ok := environ.ReadHost(c.confinement.policy(), path)
		if !ok {
			return ""
		}
		return string(text)
	})
}

// LeftOut names what commands do not get of the user's settings, because it looks
// like a secret or is not known to be harmless: "~/.npmrc: //host/:_authToken".
func (c *Commands) LeftOut() []string {
	home, _ := environ.Get(c.cfg.Env, "HOME")
	if home == "" || c.fleet == nil && !c.confinement.confined() {
		return nil
	}
	return c.settings(home, home).Left
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// openCache opens the cache of the workspace; nil where there is none: commands have
// a private one then, for as long as their session.
func (c *Commands) openCache() *scratch.Cache {
	if c.cfg.NoCache {
		return nil
	}
	trees := scratch.NewWorkdirs(c.cfg.Dir, c.cfg.AllowWrite...) // which makes nothing where commands can write
	cache, err := scratch.OpenCache(trees)
	if err != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		_ = cache.Close()
		return nil
	}
	c.opened = cache
	go trees.SweepCaches()
	return cache
}

func (c *Commands) closeCache() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opened != nil {
		_ = c.opened.Close()
	}
}
