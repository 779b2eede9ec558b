package network

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	linesAtOnce   = 100
	linesASecond  = 20
	linesRecovers = linesASecond // that there must be room for before lines are written again
)

// A flood bounds the lines of one kind: commands can cause any number of them.
type flood struct {
	mu       sync.Mutex
	room     float64
	since    time.Time // when room was right
	left     int64     // lines that were not written
	in, out  int64     // the bytes in these
	flooding bool
}

// take reports whether a line may be written, and counts it where not. Those that were
// not written are told first, once there is room again.
func (f *flood) take(c connection) (ok bool, missed flooded) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if f.since.IsZero() {
		f.room = linesAtOnce
	} else {
		f.room = min(linesAtOnce, f.room+now.Sub(f.since).Seconds()*linesASecond)
	}
	f.since = now
	if f.room < 1 || f.flooding && f.room < linesRecovers {
		f.flooding = true
		f.left, f.in, f.out = f.left+1, f.in+c.in, f.out+c.out
		return false, missed
	}
	if missed = f.missed(); missed.lines > 0 {
		f.room--
	}
	f.room--
	return true, missed
}

// flooded is what was not written.
type flooded struct{ lines, in, out int64 }

func (f *flood) missed() flooded {
	m := flooded{f.left, f.in, f.out}
	f.left, f.in, f.out, f.flooding = 0, 0, 0, false
	return m
}

func (g *Gate) logMissed(verdict string, m flooded) {
	if m.lines > 0 {
		g.cfg.Log.LogAttrs(context.Background(), slog.LevelInfo, "connections not logged", slog.String("verdict", verdict),
			slog.Int64("count", m.lines), slog.Int64("bytes_in", m.in), slog.Int64("bytes_out", m.out))
	}
}

// endLog writes what a flood has kept back.
func (g *Gate) endLog() {
	for verdict, f := range map[string]*flood{"allowed": &g.allowedLines, "refused": &g.refusedLines} {
		f.mu.Lock()
		m := f.missed()
		f.mu.Unlock()
		g.logMissed(verdict, m)
	}
}
