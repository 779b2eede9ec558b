// Package home fills the private HOME of a session: with the user's settings, without the
// secrets in them, and with what tools look for there. It makes no directory of its own (see
// package private) and knows no session.
//
// Start with [Equip]; [EquipWith] is for a session in a container.
package home

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"github.com/perstack-ai/perstack-base/sandbox/internal/settings"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/environ"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/private"
	"github.com/perstack-ai/perstack-base/sandbox/scratch"
)

// A User is whose settings the commands of a session have, and what decides which.
type User struct {
	Host   environ.Host
	Policy policy.Policy
	Cache  func() *scratch.Cache // of the workspace; it may return nil for none
}

// Equip makes a new session's HOME what tools expect of one: the user's settings
// without their secrets lie in it, and what tools keep for later goes to the cache of
// the workspace. It returns the environment that tells tools so.
func Equip(d *private.Dir, env []string, u User) []string {
	home, _ := environ.Get(env, "HOME")
	if home == "" {
		return env
	}
	for _, f := range Settings(u.Policy, home, d.Home()).Files {
		if len(u.Host.Network.Rules()) > 0 {
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
	if dir := gnupgHome(d, env, userSockets()); dir != "" {
		set["GNUPGHOME"] = dir
	}
	env = environ.Merge(env, set)
	if cache := u.Cache(); cache != nil {
		d.Cache = cache.Dir()
		env = environ.ForCache(cache.Dir(), env, u.Host)
	}
	return environ.Merge(env, u.cargoHome(d, home, env))
}

// EquipWith fills HOME with files that were read where the user's lie, in which name stands
// for HOME, and leads tools to the cache, "" for none. What env says of that stays.
func EquipWith(d *private.Dir, env []string, files []settings.File, name, cache string) []string {
	for _, f := range files {
		text := strings.ReplaceAll(f.Text, name, d.Home())
		d.Keep(f.Name, func(name string) error { return d.Write(name, []byte(text), 0o600) })
	}
	if cache == "" {
		return env
	}
	for _, v := range environ.CacheVars {
		env = environ.AddMissing(env, []string{v.Name + "=" + filepath.Join(cache, v.Dir)})
	}
	return env
}

// Settings are the user's, for a private home directory.
func Settings(p policy.Policy, home, private string) settings.Collection {
	return settings.Collect(home, private, func(path string) string {
		text, ok := environ.ReadHost(p, path)
		if !ok {
			return ""
		}
		return string(text)
	})
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
