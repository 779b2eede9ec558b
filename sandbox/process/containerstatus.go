package process

import (
	"context"
	"strings"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/remote"
)

// A ContainerStatus is what a container turned out to be.
type ContainerStatus struct {
	Image    string        `json:"image"`
	Engine   string        `json:"engine"`   // the command, and what it calls itself
	Confined string        `json:"confined"` // by what commands are confined inside; "" for nothing but the container
	Why      string        `json:"why,omitempty"`
	Machine  string        `json:"machine"`   // GOOS/GOARCH of its runner
	Start    time.Duration `json:"startTime"` // until it was ready
	Mounts   []Rule        `json:"mounts"`    // the places of this machine that it has
}

// Contained reports whether commands run in containers.
func (c *Commands) Contained() bool { return c.fleet != nil }

// TryContainer makes a container as a session does, and ends it again.
func (c *Commands) TryContainer(ctx context.Context) (ContainerStatus, error) {
	began := time.Now()
	f := c.fleet
	b := f.Launch(f.MountsFor())
	defer b.End(0, nil)
	if err := b.Await(ctx, nil); err != nil {
		return ContainerStatus{}, err
	}
	s := ContainerStatus{
		Image: c.cfg.Container.Image, Engine: f.EngineSays(),
		Confined: remote.Clip(b.Welcome.Confined), Why: remote.Clip(b.Welcome.Why), Machine: remote.Clip(b.Welcome.Machine), Start: time.Since(began),
	}
	for _, m := range b.Mounts {
		rule := Rule{Access: "read", Path: m.At, Reason: "mounted for commands"}
		if m.Write {
			rule.Access = "write"
		}
		s.Mounts = append(s.Mounts, rule)
	}
	return s, nil
}

// containerRules says in a few sentences what commands may reach, for whoever writes them.
func (c *Commands) containerRules() string {
	cfg := c.cfg
	rules := "Commands run in a container of the image " + cfg.Container.Image + ", which has the workspace where file tools see it; they may write there, in /tmp and in $TMPDIR and $HOME, which are private and temporary, and nowhere else."
	if extra := append(append([]string{}, cfg.AllowRead...), cfg.AllowWrite...); len(extra) > 0 {
		rules += " It has besides " + strings.Join(extra, ", ") + "."
	}
	return rules + strings.ReplaceAll(cfg.Network.Sentence(), "servers on this machine that", "servers that")
}
