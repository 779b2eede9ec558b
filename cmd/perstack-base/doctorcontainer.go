package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/server"
)

// containerFindings are what doctor tells where commands run in containers.
type containerFindings struct {
	Workspace string                   `json:"workspace"`
	Image     string                   `json:"image"`
	Container *process.ContainerStatus `json:"container,omitempty"`
	Why       string                   `json:"why,omitempty"` // there is none
	Network   string                   `json:"network"`
	Rules     []string                 `json:"rules,omitempty"`
	Withheld  []string                 `json:"withheld"`
	LeftOut   []string                 `json:"leftOut"`
	Limits    []process.Kept           `json:"limits"` // of what commands use together, and what keeps them
	Remedies  []string                 `json:"remedies,omitempty"`
}

// examineContainer tries a container out.
func examineContainer(cmd *cobra.Command, s *server.Server, o *options, asJSON bool) error {
	found := containerFindings{Workspace: s.Workspace(), Image: o.container.Image, Network: networkMode(o.network), Rules: o.network.Rules(),
		Withheld: append([]string{}, s.Commands().Withheld()...), LeftOut: append([]string{}, s.Commands().LeftOut()...), Limits: s.Commands().Kept()}
	status, err := s.Commands().TryContainer(cmd.Context())
	if err == nil {
		found.Container = &status
	} else {
		found.Why = err.Error()
		var hinter interface{ Hint() string }
		if errors.As(err, &hinter) && hinter.Hint() != "" {
			found.Remedies = append(found.Remedies, hinter.Hint())
		}
	}
	w := cmd.OutOrStdout()
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		err = enc.Encode(found)
	} else {
		err = found.print(w)
	}
	switch {
	case err != nil:
		return failure{err}
	case found.Container == nil:
		return failure{}
	}
	return nil
}

func (f containerFindings) print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "workspace\t%s\n", f.Workspace)
	fmt.Fprintf(tw, "files\tno path leaves the workspace (os.Root)\n")
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
	fmt.Fprintf(tw, "withheld variables\t%s\n", listed(f.Withheld))
	fmt.Fprintf(tw, "withheld settings\t%s\n", listed(f.LeftOut))
	for _, k := range f.Limits {
		fmt.Fprintf(tw, "limit\t%s\n", limited(k))
	}
	for _, remedy := range f.Remedies {
		fmt.Fprintf(tw, "to do\t%s\n", remedy)
	}
	return tw.Flush()
}
