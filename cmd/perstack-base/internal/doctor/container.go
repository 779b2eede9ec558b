package doctor

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/server"
)

// containerFindings are what doctor tells where commands run in containers.
type containerFindings struct {
	Workspace string                   `json:"workspace"`
	Image     string                   `json:"image"`
	Container *process.ContainerStatus `json:"container,omitempty"`
	Why       string                   `json:"why,omitempty"` // there is none
	common
}

// examineContainer tries a container out.
func examineContainer(ctx context.Context, w io.Writer, s *server.Server, flags Flags) (ok bool, err error) {
	found := containerFindings{Workspace: s.Workspace(), Image: flags.Image, common: commonOf(s, flags)}
	status, err := s.Commands().TryContainer(ctx)
	if ok = err == nil; ok {
		found.Container = &status
	} else {
		found.Why = found.failed(err)
	}
	if flags.JSON {
		return ok, printJSON(w, found)
	}
	return ok, found.print(w)
}

func (f *containerFindings) print(w io.Writer) error {
	tw := newTable(w, f.Workspace)
	if c := f.Container; c == nil {
		fmt.Fprintf(tw, "commands\tNO container of %s: %s\n", f.Image, f.Why)
	} else {
		fmt.Fprintf(tw, "commands\tin a container of %s, by %s\n", c.Image, c.Engine)
		fmt.Fprintf(tw, "  ready\tafter %v, on %s\n", c.Start.Round(time.Millisecond), c.Machine)
		if c.Confined != "" {
			fmt.Fprintf(tw, "  inside\tconfined besides: %s\n", c.Confined)
		} else {
			fmt.Fprintf(tw, "  inside\tby the container alone: %s\n", cmp.Or(c.Why, "nothing else"))
		}
		for _, rule := range c.Mounts {
			fmt.Fprintf(tw, "  %s\t%s: %s\n", rule.Access, rule.Path, rule.Reason)
		}
		fmt.Fprintf(tw, "  network\t%s\n", f.Network)
		for _, rule := range f.Rules {
			fmt.Fprintf(tw, "  rule\t%s\n", rule)
		}
	}
	return f.common.print(tw)
}
