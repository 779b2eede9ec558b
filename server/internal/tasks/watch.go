package tasks

import (
	"context"
	"slices"
	"time"
)

// lookEvery is how often a task that runs is looked at for what it has to show.
const lookEvery = time.Second

// A watcher is one subscription to tasks.
type watcher struct {
	bell chan struct{}
	ids  []string
	sent map[string]state
}

// A state is what a client was last told of a task.
type state struct {
	status, message string
	updated         time.Time
}

func (w *watcher) ring() {
	select {
	case w.bell <- struct{}{}:
	default: // it rings already
	}
}

// Known returns those of the ids that belong to a task, each once.
func (g *Registry) Known(ids []string) (known []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range ids {
		if g.tasks[id] != nil && !slices.Contains(known, id) {
			known = append(known, id)
		}
	}
	return known
}

// Watch tells how tasks are, now and whenever that changes, until ctx ends. tell must
// not keep the view.
func (g *Registry) Watch(ctx context.Context, ids []string, tell func(*View)) {
	w := &watcher{bell: make(chan struct{}, 1), ids: slices.Clone(ids), sent: map[string]state{}}
	g.attend(w)
	defer g.leave(w)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		views, running := g.look(w)
		for _, v := range views {
			tell(v)
		}
		ticks := tick.C
		if !running {
			ticks = nil
		}
		select {
		case <-w.bell:
		case <-ticks:
		case <-ctx.Done():
			return
		}
	}
}

func (g *Registry) attend(w *watcher) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range w.ids {
		if t := g.tasks[id]; t != nil {
			if t.watchers == nil {
				t.watchers = map[*watcher]bool{}
			}
			t.watchers[w] = true
		}
	}
}

func (g *Registry) leave(w *watcher) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range w.ids {
		if t := g.tasks[id]; t != nil {
			delete(t.watchers, w)
		}
	}
}

// look returns the tasks that have something new to show, and whether any runs.
func (g *Registry) look(w *watcher) (news []*View, running bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range w.ids {
		t := g.tasks[id]
		if t == nil {
			continue
		}
		running = running || t.lifetime == 0
		v := t.view()
		now := state{t.status, t.message, t.updated}
		if w.sent[id] != now {
			w.sent[id] = now
			news = append(news, v)
		}
	}
	return news, running
}
