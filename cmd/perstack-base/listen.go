package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/perstack-ai/perstack-base/server"
)

// web are the flags of serving over HTTP.
type web struct {
	flags     *pflag.FlagSet
	transport string
	listen    string
	tokenFile string
	hosts     []string
	origins   []string
	tlsCert   string
	tlsKey    string
}

const (
	defaultListen = "127.0.0.1:8080"
	unixPrefix    = "unix:"
	tokenEnv      = envPrefix + "AUTH_TOKEN"
)

// transports are the ways to speak MCP, the first of them without a network.
var transports = []string{"stdio", "http", "sse"}

func (o *web) register(f *pflag.FlagSet) {
	o.flags, o.listen = f, defaultListen
	choiceFlag(f, &o.transport, "transport", "WAY", transports, transports[0], "how MCP is spoken: stdio, http (Streamable HTTP at /mcp) or sse (HTTP+SSE at /sse, for old clients)")
	f.Var(&setting{"ADDRESS", defaultListen, func(text string) error {
		o.listen = text
		path, ok := strings.CutPrefix(text, unixPrefix)
		if !ok {
			return nil
		}
		path, err := filepath.Abs(expandHome(path))
		o.listen = unixPrefix + path
		return err
	}}, "listen", "where http and sse listen: HOST:PORT, :PORT (of 127.0.0.1) or unix:PATH")
	pathFlag(f, &o.tokenFile, "auth-token-file", "FILE", "clients must send the token in FILE (or in PERSTACK_BASE_AUTH_TOKEN)")
	f.StringSliceVar(&o.hosts, "allow-host", nil, "answer to these `NAMES` besides loopback, each HOST or HOST:PORT")
	f.StringSliceVar(&o.origins, "allow-origin", nil, "let web pages of these `ORIGINS` connect besides those of loopback, as in https://app.example")
	pathFlag(f, &o.tlsCert, "tls-cert", "FILE", "serve https with the certificate chain in FILE")
	pathFlag(f, &o.tlsKey, "tls-key", "FILE", "the private key of the certificate")
}

// unused refuses flags of a server on the network when there is none: otherwise
// clients would wait for a server that does not listen.
func (o *web) unused() (err error) {
	o.flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed && f.Name != "transport" && err == nil {
			err = fmt.Errorf("--%s (or %s) needs --transport http or --transport sse; with stdio nothing listens", f.Name, envName(f.Name))
		}
	})
	return err
}

// config turns the flags into what the server takes, nil for stdio.
func (o *web) config() (*server.HTTP, error) {
	if o.transport == transports[0] {
		return nil, o.unused()
	}
	token, err := o.token()
	if err != nil {
		return nil, err
	}
	hosts := o.hosts
	if host, _, err := net.SplitHostPort(o.listen); err == nil && host != "" && !isWildcard(host) {
		hosts = append([]string{host}, hosts...)
	}
	return &server.HTTP{SSE: o.transport == "sse", Token: token, Hosts: hosts, Origins: o.origins}, nil
}

// token reads the token, "" when none is configured.
func (o *web) token() (string, error) {
	if o.tokenFile == "" {
		text, ok := os.LookupEnv(tokenEnv)
		if !ok {
			return "", nil
		}
		token, err := server.ParseToken(text)
		if err != nil {
			return "", fmt.Errorf("%s: %w", tokenEnv, err)
		}
		return token, nil
	}
	text, err := os.ReadFile(o.tokenFile)
	if err != nil {
		return "", fmt.Errorf("--auth-token-file: %w", err)
	}
	token, err := server.ParseToken(string(text))
	if err != nil {
		return "", fmt.Errorf("--auth-token-file %s: %w", o.tokenFile, err)
	}
	if info, err := os.Stat(o.tokenFile); err == nil && readableByOthers(info) {
		fmt.Fprintf(stderr, "perstack-base: warning: others can read %s; chmod 600 it\n", o.tokenFile)
	}
	return token, nil
}

// open binds the address and says so on standard error. Beyond loopback it
// refuses to without a token.
func (o *web) open(cfg *server.HTTP) (net.Listener, error) {
	wrap, scheme, err := o.tls()
	if err != nil {
		return nil, err
	}
	if path, ok := strings.CutPrefix(o.listen, unixPrefix); ok {
		ln, err := listenUnix(path)
		if err != nil {
			return nil, fmt.Errorf("--listen %s: %w", o.listen, err)
		}
		fmt.Fprintf(stderr, "perstack-base: listening on %s%s\n", unixPrefix, path)
		return wrap(ln), nil
	}
	addr, err := o.resolve(cfg.Token)
	if err != nil {
		return nil, err
	}
	ln, err := net.ListenTCP("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("--listen %s: %w", o.listen, err)
	}
	fmt.Fprintf(stderr, "perstack-base: listening on %s://%s%s\n", scheme, ln.Addr(), cfg.Path())
	return wrap(ln), nil
}

// resolve looks up the address once, so that what is checked is what is bound.
func (o *web) resolve(token string) (*net.TCPAddr, error) {
	listen := o.listen
	if strings.HasPrefix(listen, ":") {
		listen = "127.0.0.1" + listen
	}
	addr, err := net.ResolveTCPAddr("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("--listen %s: must be HOST:PORT, :PORT or unix:PATH: %w", o.listen, err)
	}
	if !addr.IP.IsLoopback() && token == "" {
		return nil, fmt.Errorf("refusing to listen on %s without a token: anyone who can reach it could run commands; set --auth-token-file or %s, or listen on 127.0.0.1", o.listen, tokenEnv)
	}
	return addr, nil
}

func isWildcard(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsUnspecified()
}

// tls returns what makes a listener speak it, if it is to.
func (o *web) tls() (wrap func(net.Listener) net.Listener, scheme string, err error) {
	if o.tlsCert == "" && o.tlsKey == "" {
		return func(ln net.Listener) net.Listener { return ln }, "http", nil
	}
	if o.tlsCert == "" || o.tlsKey == "" {
		return nil, "", errors.New("--tls-cert and --tls-key go together")
	}
	pair, err := tls.LoadX509KeyPair(o.tlsCert, o.tlsKey)
	if err != nil {
		return nil, "", fmt.Errorf("--tls-cert, --tls-key: %w", err)
	}
	cfg := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	return func(ln net.Listener) net.Listener { return tls.NewListener(ln, cfg) }, "https", nil
}
