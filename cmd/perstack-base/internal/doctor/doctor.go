// Package doctor tries out what a server enforces on this machine, and tells what it
// does not and what to do about that.
//
// Start with [Examine], for commands that run here or in a container, and [Reach], for
// one address that a command connects to.
package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/sandbox/process/quota"
	"github.com/perstack-ai/perstack-base/server"
)

// Flags are those that what is found depends on.
type Flags struct {
	Sandbox string // the mode
	Image   string // of the containers that commands run in, "" for none
	Network process.Network
	JSON    bool // print JSON
}

// common is what doctor tells wherever commands run.
type common struct {
	Network  string       `json:"network"`            // deny, allow or rules
	Rules    []string     `json:"rules,omitempty"`    // what of the network commands reach
	Withheld []string     `json:"withheld"`           // names of variables that commands do not see
	LeftOut  []string     `json:"leftOut"`            // names of settings that commands do not get
	Limits   []quota.Kept `json:"limits"`             // of what commands use together, and what keeps them
	Remedies []string     `json:"remedies,omitempty"` // what to do
}

func commonOf(s *server.Server, flags Flags) common {
	c := common{
		Network: flags.Network.String(), Rules: flags.Network.Rules(), Limits: s.Commands().Kept(),
		Withheld: append([]string{}, s.Commands().Withheld()...), LeftOut: append([]string{}, s.Commands().LeftOut()...),
	}
	if len(c.Rules) > 0 {
		c.Network = "rules"
	}
	return c
}

// failed notes why commands cannot be confined, and what to do where the error says that.
func (c *common) failed(err error) (why string) {
	var hinter interface{ Hint() string }
	if errors.As(err, &hinter) && hinter.Hint() != "" {
		c.Remedies = append(c.Remedies, hinter.Hint())
	}
	return err.Error()
}

// print writes the last rows of the table.
func (c *common) print(tw *tabwriter.Writer) error {
	fmt.Fprintf(tw, "withheld variables\t%s\n", listed(c.Withheld))
	fmt.Fprintf(tw, "withheld settings\t%s\n", listed(c.LeftOut))
	for _, k := range c.Limits {
		fmt.Fprintf(tw, "limit\t%s\n", limited(k))
	}
	for _, remedy := range c.Remedies {
		fmt.Fprintf(tw, "to do\t%s\n", remedy)
	}
	return tw.Flush()
}

// newTable begins a table with what holds for every server.
func newTable(w io.Writer, workspace string) *tabwriter.Writer {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "workspace\t%s\n", workspace)
	fmt.Fprintf(tw, "files\tno path leaves the workspace (os.Root)\n")
	return tw
}

// printJSON writes findings for programs.
func printJSON(w io.Writer, findings any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(findings)
}

// limited tells of one limit.
func limited(k quota.Kept) string {
	text := k.Flag
	switch {
	case k.Asked:
		text += " " + k.Value + " is kept " + string(k.Keeping)
	case k.Value != "":
		text += " " + k.Value + " (the default) is kept " + string(k.Keeping)
	default:
		text += " (there is none) would be kept " + string(k.Keeping)
	}
	return text + ": " + k.By
}

// unkept reports whether a limit was asked for and nothing keeps it.
func unkept(k quota.Kept) bool { return k.Asked && k.Keeping == quota.Unkept }

// delegation says how limits that were asked for come to be kept exactly, where they
// are not.
func delegation(limits []quota.Kept) string {
	if slices.ContainsFunc(limits, func(k quota.Kept) bool { return k.Asked && k.Keeping != quota.Exactly }) {
		return quota.DelegateHint
	}
	return ""
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// unless is a text where something does not hold.
func unless(holds bool, text string) string {
	if holds {
		return ""
	}
	return text
}
