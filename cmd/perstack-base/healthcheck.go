package main

import (
	"context"
	"crypto/tls"
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
	return &cobra.Command{
		Use:   "healthcheck [URL]",
		Short: "Ask a server whether it is there, for containers without other tools",
		Long:  "Ask the server at URL, or at the address of --listen on this machine, whether it is there.\nExit code 1 means that it is not. With --transport stdio there is nothing to ask.",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			url := ""
			if len(args) == 1 {
				url = args[0]
			} else if o.web.transport == "stdio" {
				return nil
			}
			if err := checkHealth(cmd.Context(), &o.web, url); err != nil {
				return failure{err}
			}
			return nil
		},
	}
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
