package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/sandbox/process/capture"
	"github.com/perstack-ai/perstack-base/server"
)

// reachTime is how long an attempt to connect may take: a network that answers
// nothing is none.
const reachTime = 15 * time.Second

// CheckTarget refuses what is not a host and a port.
func CheckTarget(text string) error {
	host, port, err := net.SplitHostPort(text)
	n, notNumber := strconv.ParseUint(port, 10, 16)
	if err != nil || notNumber != nil || n == 0 || !isHost(host) {
		return errors.New("must be a host and a port, as in registry.npmjs.org:443 or [2001:db8::1]:22")
	}
	return nil
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

// Connect connects to a target from where it is, and prints what answered.
func Connect(ctx context.Context, w io.Writer, target string) error {
	dialer, began := net.Dialer{Timeout: reachTime}, time.Now()
	conn, err := dialer.DialContext(ctx, "tcp", target)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = fmt.Fprintf(w, "%s in %d ms\n", conn.RemoteAddr(), time.Since(began).Milliseconds())
	return err
}

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

// Reach has a command of the server connect to a target and prints what came of it, with
// the reason. The command is program, which must call [Connect]; its arguments end
// with the target.
func Reach(ctx context.Context, w io.Writer, s *server.Server, target string, command process.Command, asJSON bool) (reached bool, err error) {
	shell := s.Commands().NewShell()
	defer shell.Close()
	command.Stdout, command.Stderr, command.Timeout, command.NoSurvivors = true, true, 2*reachTime, true
	res, err := shell.Run(ctx, command)
	if err != nil {
		return false, fmt.Errorf("no command can try it: %w", err)
	}
	v := verdict{Target: target, Reached: res.ExitCode == 0 && !res.TimedOut, Refused: res.Refused}
	v.Confined, v.Why = s.Commands().Confined()
	if v.Reached {
		v.At = strings.TrimSpace(capture.ValidText(res.Stdout.Head))
	} else {
		said := strings.TrimSpace(capture.ValidText(res.Stderr.Head))
		v.Error = cmp.Or(strings.TrimPrefix(said, "perstack-base: "), "it gave no answer")
	}
	return v.Reached, v.write(w, asJSON)
}

func (v verdict) write(w io.Writer, asJSON bool) error {
	if asJSON {
		return printJSON(w, v)
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
