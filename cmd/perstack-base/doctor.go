package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/server"
)

func doctorCommand(o *options) *cobra.Command {
	var asJSON bool
	var target string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Try out what is enforced here, and tell what is not and what to do",
		Long: `Try out what the sandbox promises on this machine, with these flags: a process outside makes each
forbidden call and must succeed, a confined one makes it and must fail. Only what was tried is
claimed. Then come the paths that commands may reach, each with the reason, and those that are left
out. Exit code 1 means that something is not enforced.

With --container, a container is made as for a session, and what it has is told.

With --reach, a command connects to HOST:PORT instead, confined like every other, and the verdict is
explained. Exit code 1 means that it was not reached.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, end, err := open(o)
			if err != nil {
				return err
			}
			defer end()
			if target != "" {
				return reach(cmd, s, target, asJSON)
			}
			if s.Commands().Contained() {
				return examineContainer(cmd, s, o, asJSON)
			}
			return examine(cmd.OutOrStdout(), s, o, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	reachFlag(cmd.Flags(), &target)
	return cmd
}

// findings are what doctor tells.
type findings struct {
	Workspace string          `json:"workspace"`
	Sandbox   string          `json:"sandbox"` // the mode
	Confined  bool            `json:"confined"`
	Why       string          `json:"why,omitempty"` // commands are not confined
	Status    *process.Status `json:"status,omitempty"`
	Network   string          `json:"network"`            // deny, allow or rules
	Rules     []string        `json:"rules,omitempty"`    // what of the network commands reach
	NotTaken  []string        `json:"notTaken,omitempty"` // mechanisms that come before it, and why they are not taken
	Policy    []process.Rule  `json:"policy"`             // what commands may reach
	Withheld  []string        `json:"withheld"`           // names of variables that commands do not see
	LeftOut   []string        `json:"leftOut"`            // names of settings that commands do not get
	Limits    []process.Kept  `json:"limits"`             // of what commands use together, and what keeps them
	Remedies  []string        `json:"remedies,omitempty"`
}

func examine(w io.Writer, s *server.Server, o *options, asJSON bool) error {
	found := findings{Workspace: s.Workspace(), Sandbox: o.sandbox, Withheld: append([]string{}, s.Commands().Withheld()...), LeftOut: append([]string{}, s.Commands().LeftOut()...)}
	found.Network, found.Rules = networkMode(o.network), o.network.Rules()
	status, err := s.Commands().SelfTest()
	if err != nil {
		found.Why = err.Error()
		var hinter interface{ Hint() string }
		if errors.As(err, &hinter) {
			found.Remedies = append(found.Remedies, hinter.Hint())
		}
	} else {
		found.Status, found.Confined, found.Policy = &status, status.Enforced(), s.Commands().Policy()
		found.NotTaken = s.Commands().NotTaken()
	}
	found.Limits = s.Commands().Kept()
	if found.Remedies == nil {
		found.Remedies = remedies(found)
	}
	if remedy := delegation(found.Limits); remedy != "" {
		found.Remedies = append(found.Remedies, remedy)
	}
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
	case !found.Confined || slices.ContainsFunc(found.Limits, unkept):
		return failure{}
	}
	return nil
}

func (f findings) print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "workspace\t%s\n", f.Workspace)
	fmt.Fprintf(tw, "files\tno path leaves the workspace (os.Root)\n")
	if f.Status == nil {
		fmt.Fprintf(tw, "commands\tNOT confined: %s\n", f.Why)
	} else {
		fmt.Fprintf(tw, "commands\t%s\n", f.mechanism())
		for _, row := range []struct {
			name  string
			check process.Check
		}{{"  files", f.Status.Files}, {"  network", f.Status.Network}, {"  signals", f.Status.Signals}, {"  kill", f.Status.Kill}} {
			fmt.Fprintf(tw, "%s\t%s: %s\n", row.name, map[bool]string{true: "proven", false: "NOT proven"}[row.check.Proven], row.check.Detail)
		}
	}
	for _, other := range f.NotTaken {
		fmt.Fprintf(tw, "  not taken\t%s\n", other)
	}
	for _, rule := range f.Rules {
		fmt.Fprintf(tw, "  rule\t%s%s\n", rule, unless(f.Confined, ": nothing enforces it"))
	}
	for _, rule := range f.Policy {
		fmt.Fprintf(tw, "  %s\t%s: %s\n", rule.Access, rule.Path, rule.Reason)
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

// limited tells of one limit.
func limited(k process.Kept) string {
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
func unkept(k process.Kept) bool { return k.Asked && k.Keeping == process.Unkept }

// delegation says how limits that were asked for come to be kept exactly, where they
// are not.
func delegation(limits []process.Kept) string {
	if slices.ContainsFunc(limits, func(k process.Kept) bool { return k.Asked && k.Keeping != process.Exactly }) {
		return process.DelegateHint
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

// mechanism names what confines commands here.
func (f findings) mechanism() string {
	var parts []string
	if f.Status.Tier == process.Namespaces {
		parts = append(parts, "namespaces")
	}
	if f.Status.LandlockABI > 0 {
		parts = append(parts, fmt.Sprintf("landlock abi %d", f.Status.LandlockABI))
	}
	if f.Status.Seccomp {
		parts = append(parts, "seccomp")
	}
	text := "confined: " + strings.Join(parts, " + ")
	if f.Status.Injected {
		text += " (sockets are made by the server, because this container forbids to duplicate them)"
	}
	return text
}

// remedies say what to do about what is missing.
func remedies(f findings) (out []string) {
	switch {
	case f.Sandbox == string(process.Off):
		out = append(out, "start without --sandbox off")
	case f.Status == nil:
		out = append(out, "run on Linux 5.13 or newer with Landlock among the kernel's security modules (cat /sys/kernel/security/lsm) "+
			"or where this user may make namespaces (unshare -Urmpn true), "+
			"or run the server in a container or virtual machine of its own; --sandbox strict refuses commands instead")
	case f.Status.Tier == process.Threads && f.Status.LandlockABI < 6:
		out = append(out, "let this user make namespaces (unshare -Urmpn true), or take Linux 6.12 or newer: either way the kernel "+
			"confines signals too, and ends every process of a command")
	}
	return out
}
