package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// healthTime is how long a server may take to say that it is there.
const healthTime = 5 * time.Second

func healthcheckCommand(o *options) *cobra.Command {
	var stdioOK bool
	cmd := &cobra.Command{
		Use:   "healthcheck [URL]",
		Short: "Ask a running server over HTTP whether it is well",
		Long: `Ask the server at URL, or the one that flags such as --transport http and --listen describe, whether
it is well. Exit code 0: it answers. Exit code 1: it does not.`,
		Example: `  perstack-base healthcheck --transport http                  the server at ` + defaultListen + `
  perstack-base healthcheck http://127.0.0.1:9000/healthz     the server there
  perstack-base healthcheck --listen unix:/run/me/mcp         the server behind a socket`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			url := strings.Join(args, "")
			switch asked := url != "" || o.web.transport != transports[0] || o.web.flags.Changed("listen"); {
			case !asked && stdioOK:
				return nil
			case !asked:
				return errors.New("there is no server to ask: with stdio only its client can reach it; give a URL, --listen, or --transport http")
			}
			if err := checkHealth(cmd.Context(), &o.web, url); err != nil {
				return failure{err}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&stdioOK, "stdio-ok", false, "exit 0 when the transport is stdio, where nothing can be asked (for images)")
	return cmd
}

func checkHealth(ctx context.Context, o *web, url string) error {
	ctx, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	transport := &http.Transport{}
	if url == "" {
		url = o.healthURL(transport)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return nil
}

// healthURL is where a server with these flags answers on this machine. What is
// asked is no secret and comes from here, so its certificate is not checked: it
// is for the name by which others call it.
func (o *web) healthURL(transport *http.Transport) string {
	scheme := "http"
	if o.tlsCert != "" {
		scheme = "https"
		transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	}
	if path, ok := strings.CutPrefix(o.listen, unixPrefix); ok {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
		return scheme + "://localhost/healthz"
	}
	host, port, _ := net.SplitHostPort(o.listen)
	if host == "" || isWildcard(host) {
		host = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(host, port) + "/healthz"
}
