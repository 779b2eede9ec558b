package process

import (
	"encoding/json"
	"errors"
	"os"

	"github.com/perstack-ai/perstack-base/sandbox/internal/remote"
	"github.com/perstack-ai/perstack-base/sandbox/internal/settings"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/containers"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/environ"
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
