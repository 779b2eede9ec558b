package doctor

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/server"
)

// findings are what doctor tells where commands run on this machine.
type findings struct {
	Workspace string          `json:"workspace"`
	Sandbox   string          `json:"sandbox"` // the mode
	Confined  bool            `json:"confined"`
	Why       string          `json:"why,omitempty"` // commands are not confined
	Status    *process.Status `json:"status,omitempty"`
	NotTaken  []string        `json:"notTaken,omitempty"` // mechanisms that come before it, and why they are not taken
	Policy    []process.Rule  `json:"policy"`             // what commands may reach
	common
}

// Examine tries out what holds for the commands of a server, and prints it. ok says
// that everything that was asked for is enforced.
func Examine(ctx context.Context, w io.Writer, s *server.Server, flags Flags) (ok bool, err error) {
	if s.Commands().Contained() {
		return examineContainer(ctx, w, s, flags)
	}
	found := findings{Workspace: s.Workspace(), Sandbox: flags.Sandbox, common: commonOf(s, flags)}
	status, err := s.Commands().SelfTest()
	if err != nil {
		found.Why = found.failed(err)
	} else {
		found.Status, found.Confined, found.Policy = &status, status.Enforced(), s.Commands().Policy()
		found.NotTaken = s.Commands().NotTaken()
	}
	if found.Remedies == nil {
		found.Remedies = remedies(found)
	}
	if remedy := delegation(found.Limits); remedy != "" {
		found.Remedies = append(found.Remedies, remedy)
	}
	ok = found.Confined && !slices.ContainsFunc(found.Limits, unkept)
	if flags.JSON {
		return ok, printJSON(w, found)
	}
	return ok, found.print(w)
}

func (f *findings) print(w io.Writer) error {
	tw := newTable(w, f.Workspace)
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
	return f.common.print(tw)
}

// mechanism names what confines commands here.
func (f *findings) mechanism() string {
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
	if f.Status.Tier == process.Threads && !f.Status.Broker {
		text += " (commands cannot bind, connect, or change the modes, owners and times of files, because the kernel, " +
			"or another sandbox around this server, permits no seccomp listener that would judge it)"
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
