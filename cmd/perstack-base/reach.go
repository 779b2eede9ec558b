package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/sandbox/process/capture"
	"github.com/perstack-ai/perstack-base/server"
)

// reachTime is how long an attempt to connect may take: a network that answers
// nothing is none.
const reachTime = 15 * time.Second

// reachFlag takes the address that doctor tries.
func reachFlag(f *pflag.FlagSet, p *string) {
	f.Var(&setting{"HOST:PORT", "", func(text string) error {
		host, port, err := net.SplitHostPort(text)
		n, notNumber := strconv.ParseUint(port, 10, 16)
		if err != nil || notNumber != nil || n == 0 || !isHost(host) {
			return errors.New("must be a host and a port, as in registry.npmjs.org:443 or [2001:db8::1]:22")
		}
		*p = text
		return nil
	}}, "reach", "have a command connect there, and explain whether it can")
}

// isHost reports whether something can be a name or an address. An address of a link
// has the link's name behind it.
func isHost(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return !strings.ContainsFunc(host, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) })
	}
	return host != "" && !strings.HasPrefix(host, "-") && !strings.ContainsFunc(host, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && !strings.ContainsRune(".-_", r)
	})
}

// insideCommand connects from where it is. Doctor runs it as a command of a session.
func insideCommand() *cobra.Command {
	return &cobra.Command{
		Use: insideName + " HOST:PORT", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dialer, began := net.Dialer{Timeout: reachTime}, time.Now()
			conn, err := dialer.DialContext(cmd.Context(), "tcp", args[0])
			if err != nil {
				return failure{err}
			}
			defer conn.Close()
			fmt.Fprintf(cmd.OutOrStdout(), "%s in %d ms\n", conn.RemoteAddr(), time.Since(began).Milliseconds())
			return nil
		},
	}
}

const insideName = "connect-from-inside"

// A verdict says what came of the attempt to connect.
type verdict struct {
	Target   string   `json:"target"`
	Reached  bool     `json:"reached"`
	At       string   `json:"at,omitempty"`    // the address that answered, and after what time
	Error    string   `json:"error,omitempty"` // what the command was told
	Refused  []string `json:"refused,omitempty"`
	Confined bool     `json:"confined"`
	Why      string   `json:"why,omitempty"` // commands are not confined
}

// reach has a command connect to the target and explains what came of it.
func reach(cmd *cobra.Command, s *server.Server, target string, asJSON bool) error {
	program, err := os.Executable()
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		return failure{err}
	}
	shell := s.Commands().NewShell()
	defer shell.Close()
	res, err := shell.Run(cmd.Context(), process.Command{
		Name: program, Args: []string{insideName, "--", target}, Read: []string{program}, Env: withoutFlags(cmd),
		Stdout: true, Stderr: true, Timeout: 2 * reachTime, NoSurvivors: true,
	})
	if err != nil {
		return failure{fmt.Errorf("no command can try it: %w", err)}
	}
	v := verdict{Target: target, Reached: res.ExitCode == 0 && !res.TimedOut, Refused: res.Refused}
	v.Confined, v.Why = s.Commands().Confined()
	if v.Reached {
		v.At = strings.TrimSpace(capture.ValidText(res.Stdout.Head))
	} else {
		said := strings.TrimSpace(capture.ValidText(res.Stderr.Head))
		v.Error = cmp.Or(strings.TrimPrefix(said, "perstack-base: "), "it gave no answer")
	}
	if err := v.write(cmd.OutOrStdout(), asJSON); err != nil {
		return failure{err}
	}
	if !v.Reached {
		return failure{}
	}
	return nil
}

// withoutFlags takes the variables that set flags away from the command that tries:
// they concern the server.
func withoutFlags(cmd *cobra.Command) map[string]string {
	empty := map[string]string{}
	cmd.Root().PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if os.Getenv(envName(f.Name)) != "" {
			empty[envName(f.Name)] = ""
		}
	})
	return empty
}

func (v verdict) write(w io.Writer, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if v.Reached {
		fmt.Fprintf(tw, "reached\t%s: %s\n", v.Target, v.At)
	} else {
		fmt.Fprintf(tw, "not reached\t%s: %s\n", v.Target, v.Error)
	}
	for _, sentence := range v.Refused {
		fmt.Fprintf(tw, "why\t%s\n", sentence)
	}
	switch {
	case !v.Confined:
		fmt.Fprintf(tw, "commands\tNOT confined, so --network is not enforced: %s\n", v.Why)
	case !v.Reached && v.Refused == nil:
		fmt.Fprintf(tw, "why\tthe sandbox refused nothing: it is the network, or the host\n")
	}
	return tw.Flush()
}
