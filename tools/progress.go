package tools

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/mark3labs/mcp-go/mcp"
)

// How often a command's progress is told: quick enough to watch, too slow to
// flood a client, and a sign of life when nothing is printed.
const (
	progressEvery = 250 * time.Millisecond
	progressAlive = 5 * time.Second
	progressWidth = 200 // characters of the last line of output
)

type progressKey struct{}

// withProgress remembers the request's progress token, when it has one.
func withProgress(ctx context.Context, req mcp.CallToolRequest) context.Context {
	if req.Params.Meta == nil || req.Params.Meta.ProgressToken == nil {
		return ctx
	}
	return context.WithValue(ctx, progressKey{}, req.Params.Meta.ProgressToken)
}

// A progress tells a client how one command is getting on. A nil *progress is
// that of a client which did not ask.
type progress struct {
	ctx    context.Context
	notify Notifier
	token  any
	start  time.Time
	tail   func() (line string, seen int64) // the last line of output; seen grows with output

	mu   sync.Mutex
	last int64 // milliseconds of the last report: they rise strictly
	done bool
	stop chan struct{}
}

// startProgress begins to report on a command whose last line tail returns.
func startProgress(ctx context.Context, tail func() (string, int64)) *progress {
	notify, token := NotifierFrom(ctx), ctx.Value(progressKey{})
	if notify == nil || token == nil {
		return nil
	}
	p := &progress{ctx: ctx, notify: notify, token: token, start: time.Now(), tail: tail, last: -1, stop: make(chan struct{})}
	go p.watch()
	return p
}

// watch reports the first time after progressEvery, then when there is new
// output, and every progressAlive in any case.
func (p *progress) watch() {
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	reported, seen := time.Time{}, int64(-1)
	for {
		select {
		case <-p.stop:
			return
		case <-p.ctx.Done():
			return
		case now := <-ticker.C:
			line, n := p.tail()
			if n == seen && now.Sub(reported) < progressAlive {
				continue
			}
			reported, seen = now, n
			p.send(gettingOn(line, now.Sub(p.start)), false)
		}
	}
}

// gettingOn says how a command is getting on that has printed this line last.
func gettingOn(line string, running time.Duration) string {
	if line = clean(line); line == "" {
		line = fmt.Sprintf("running for %d s", int(running.Seconds()))
	}
	return line
}

// finish sends the last report, right before the result. After a cancel nothing is sent.
func (p *progress) finish(outcome string) {
	if p == nil {
		return
	}
	close(p.stop)
	p.send(endedAfter(outcome, time.Since(p.start)), true)
}

// endedAfter says how a command ended, and when.
func endedAfter(outcome string, ran time.Duration) string {
	return fmt.Sprintf("%s after %.1f s", outcome, ran.Seconds())
}

func (p *progress) send(message string, last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done || p.ctx.Err() != nil {
		return
	}
	p.done = last
	p.last = max(p.last+1, time.Since(p.start).Milliseconds())
	p.notify("notifications/progress", map[string]any{"progressToken": p.token, "progress": p.last, "message": message})
}

// colour matches terminal control sequences; compiled when first needed.
var colour = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\x1b(\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|.)`)
})

// clean makes a line of output fit for one line of a status display.
func clean(line string) string {
	line = colour().ReplaceAllString(line, "")
	if i := strings.LastIndexByte(strings.TrimRight(line, "\r"), '\r'); i >= 0 {
		line = line[i+1:] // what a progress bar shows last
	}
	line = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(line, "\ufffd"))
	if runes := []rune(strings.TrimSpace(line)); len(runes) > progressWidth {
		return string(runes[:progressWidth])
	}
	return strings.TrimSpace(line)
}
