//go:build amd64 || arm64

package confine

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/network"
)

// visitOften tells how long a connection takes, until its first byte.
func visitOften(where string) (string, error) {
	const rounds = 500
	start := time.Now()
	for range rounds {
		conn, err := net.Dial("tcp", where)
		if err != nil {
			return "", err
		}
		if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
			return "", err
		}
		conn.Close()
	}
	return (time.Since(start) / rounds).String(), nil
}

// visitLong tells how long it takes to get a gigabyte.
func visitLong(where string) (string, error) {
	conn, err := net.Dial("tcp", where)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	start := time.Now()
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{conn}, make([]byte, 256<<10))
	return time.Duration(float64(time.Since(start)) * float64(1<<30) / float64(n)).String(), err
}

// BenchmarkGateway compares a connection (until its first byte) and a gigabyte through
// the gateway with the same outside, in turn, and with the least that a relay can be:
// outside, by way of a program that hands on what it is sent.
func BenchmarkGateway(b *testing.B) {
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	for how, size := range map[string]int64{"connects": 1, "download": 1 << 30} {
		b.Run(how, func(b *testing.B) {
			at := serveBytes(b, size)
			parsed, err := network.Parse("203.0.113.7:443")
			if err != nil {
				b.Fatal(err)
			}
			gate := network.NewGate(network.Config{Rules: parsed, Dial: func(context.Context, netip.AddrPort) (net.Conn, error) { return net.Dial("tcp", at) }})
			defer gate.Close()
			p := newPlace(b)
			i, err := NewIsolator(Isolation{Policy: p.policy(), Workspace: p.ws, Gate: gate})
			if err != nil {
				b.Skip(err)
			}
			defer i.Close()
			relayed := handOn(b, at)
			var inside, outside, floor time.Duration
			for b.Loop() {
				out, _ := p.in(b, i, []string{visitsVar + "=" + how + " 203.0.113.7:443"}, exe)
				inside += tookOf(b, out)
				outside += tookOf(b, p.do(b, nil, []string{visitsVar + "=" + how + " " + at}, exe).out)
				floor += tookOf(b, p.do(b, nil, []string{visitsVar + "=" + how + " " + relayed}, exe).out)
			}
			b.ReportMetric(float64(inside.Microseconds())/float64(b.N), "µs-inside")
			b.ReportMetric(float64(outside.Microseconds())/float64(b.N), "µs-outside")
			b.ReportMetric(float64(floor.Microseconds())/float64(b.N), "µs-floor")
		})
	}
}

func tookOf(b *testing.B, line string) time.Duration {
	d, err := time.ParseDuration(strings.TrimSpace(line[strings.LastIndex(line, " ")+1:]))
	if err != nil {
		b.Fatal(fmt.Errorf("%s: %w", line, err))
	}
	return d
}

// handOn sends whoever connects what a server sends, and nothing back.
func handOn(b *testing.B, server string) (at string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				from, err := net.Dial("tcp", server)
				if err != nil {
					return
				}
				defer from.Close()
				_, _ = io.Copy(conn, from)
			}()
		}
	}()
	return l.Addr().String()
}

// serveBytes sends so many to whoever connects.
func serveBytes(b *testing.B, size int64) (at string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				block := make([]byte, min(size, 256<<10))
				for left := size; left > 0; {
					n, err := conn.Write(block)
					if left -= int64(n); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}
