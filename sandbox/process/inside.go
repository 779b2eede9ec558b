package process

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/internal/remote"
	"github.com/perstack-ai/perstack-base/sandbox/internal/settings"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/containers"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/environ"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/private"
)

// An inside says what commands of a runner find, who is in a container himself.
type inside struct {
	tree  string          // where the private directories of sessions are made
	cache string          // of the workspace, for this image; "" for none
	files []settings.File // of HOME
	home  string          // what stands for it in them
}

// canaryName is a file of the tree: who finds it sees what the server sees.
const (
	canaryName = "canary"
	maxCanary  = 64
)

// insideConfig is that of a runner's commands. The walls are the container's, so
// all of its files can be read, and what the server has mounted for that be written.
func insideConfig(h *remote.Hello) (Config, error) {
	network, err := ParseNetwork(h.Network)
	if err != nil {
		return Config{}, err
	}
	cfg := Config{
		Dir: string(h.Workspace), Sandbox: Mode(h.Sandbox), Network: network, NoCache: true,
		Env: environ.AddMissing(environ.WithoutEnginesProxies(os.Environ(), network), remote.Strings(h.Env)), PassEnv: []string{"*"}, // the server has filtered them
		AllowRead: []string{"/"}, AllowWrite: append([]string{containers.TmpInside}, remote.Strings(h.Write)...),
		inside: &inside{string(h.Tree), string(h.Cache), filesOf(h.Settings), string(h.Home)},
	}
	if cfg.inside.cache != "" {
		cfg.AllowWrite = append(cfg.AllowWrite, cfg.inside.cache)
	}
	return cfg, errors.Join(json.Unmarshal(h.Limits, &cfg.Limits), json.Unmarshal(h.Quota, &cfg.Quota))
}

// equip fills the HOME of a session and returns the environment that leads tools to
// the cache. What the image says of that stays.
func (in *inside) equip(d *private.Dir, env []string) []string {
	for _, f := range in.files {
		text := strings.ReplaceAll(f.Text, in.home, d.Home())
		d.Keep(f.Name, func(name string) error { return d.Write(name, []byte(text), 0o600) })
	}
	if in.cache == "" {
		return env
	}
	for _, v := range environ.CacheVars {
		env = environ.AddMissing(env, []string{v.Name + "=" + filepath.Join(in.cache, v.Dir)})
	}
	return env
}
