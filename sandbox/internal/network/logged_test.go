package network

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestFloodsDoNotFillTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		g := NewGate(Config{Rules: mustParse(t, "198.51.100.1"), Resolver: &zone{}, Log: slog.New(slog.NewTextHandler(&out, nil))})
		lines := func() int { return strings.Count(out.String(), "msg=connection ") }
		flood := func(n int) {
			for i := range n {
				g.refuseName(fmt.Sprintf("n%d.example", i), "no rule permits it", "")
			}
		}
		flood(1000)
		if n := lines(); n != linesAtOnce || strings.Contains(out.String(), "not logged") {
			t.Error(n, "lines at once")
		}
		if !g.Admit(netip.MustParseAddrPort("198.51.100.1:443")).Allowed || !strings.Contains(out.String(), "verdict=allowed") {
			t.Error("refusals hide what was let through")
		}
		out.Reset()
		for range 100 { // ten seconds of it
			time.Sleep(100 * time.Millisecond)
			flood(100)
		}
		if n := strings.Count(out.String(), "\n"); n < 10 || n > 10*linesASecond {
			t.Error(n, "lines in ten seconds")
		}
		time.Sleep(time.Minute)
		out.Reset()
		flood(1)
		if got := out.String(); lines() != 1 || strings.Count(got, `msg="connections not logged" verdict=refused count=`) != 1 {
			t.Error(got)
		}
		out.Reset()
		flood(linesAtOnce + 5)
		g.log(connection{verdict: Verdict{}, in: 3, out: 4})
		g.Close()
		if got := out.String(); !strings.HasSuffix(got, `msg="connections not logged" verdict=refused count=8 bytes_in=3 bytes_out=4`+"\n") {
			t.Error(got[len(got)-300:])
		}
	})
}
