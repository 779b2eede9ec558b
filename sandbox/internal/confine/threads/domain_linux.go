//go:build amd64 || arm64

package threads

import (
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/broker"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/hints"
	"github.com/perstack-ai/perstack-base/sandbox/internal/proc"
)

// A Domain is one command and everything descended from it, however detached.
type Domain struct {
	confiner *Confiner
	tid      int         // the thread that started the command; gone soon after
	job      chan func() // what that thread runs, once
	listener int
	Watcher  *Watcher       // nil where signals are not scoped
	broker   *broker.Broker // nil where there is no listener

	leader  int         // the process that start returned
	born    uint64      // when it was; its id may be another's later
	started atomic.Bool // leader and born are set
	done    chan struct{}
	release sync.Once
}

// newDomain confines a thread and serves its questions; nothing runs in it yet.
func (c *Confiner) newDomain() (*Domain, error) {
	if err := threads.add(c); err != nil {
		return nil, err
	}
	d := &Domain{confiner: c, job: make(chan func()), listener: -1, done: make(chan struct{})}
	ready := make(chan error)
	go d.onConfinedThread(ready)
	err := <-ready
	if err == nil && d.Watcher != nil {
		err = d.Watcher.begin(c.proveScope)
	}
	if err != nil {
		d.abandon()
		return nil, err
	}
	if d.listener >= 0 {
		var w broker.Watcher
		if d.Watcher != nil {
			w = d.Watcher
		}
		d.broker = broker.New(d.confiner.Session, d.listener, w)
		go func() {
			d.broker.Serve() // until no process is left
			d.finish()
		}()
	}
	return d, nil
}

// abandon undoes what newDomain had before it failed.
func (d *Domain) abandon() {
	threads.remove(d.confiner)
	close(d.job)
	if d.Watcher != nil {
		d.Watcher.close()
	}
	if d.listener >= 0 {
		unix.Close(d.listener)
	}
}

// discard ends a domain in which nothing was started.
func (d *Domain) discard() {
	close(d.job)
	if d.broker == nil {
		d.finish()
	}
}

// run has the confined thread run start, and lets the thread end.
func (d *Domain) run(start func() (int, error)) (err error) {
	ran := make(chan struct{})
	d.job <- func() {
		defer close(ran)
		d.leader, err = proc.Start(start)
	}
	<-ran
	if err == nil {
		p, _ := proc.Read(d.leader) // which is there until the caller of Start collects it
		d.born = p.Born
		d.started.Store(true)
	} else if d.broker == nil {
		d.finish()
	}
	return err
}

// finish gives everything back. No process is left, or none that could be known.
func (d *Domain) finish() {
	d.release.Do(func() {
		if d.Watcher != nil {
			d.Watcher.close()
		}
		d.confiner.forget(d)
		threads.remove(d.confiner)
		close(d.done)
	})
}

// Done is closed when no process of the domain is left.
func (d *Domain) Done() <-chan struct{} { return d.done }

// Alive reports whether a process of the domain is left.
func (d *Domain) Alive() bool {
	select {
	case <-d.done:
		return false
	default:
		return true
	}
}

// Refusals returns what the broker refused so far, most frequent first. It may
// be called at any time, also after the end.
func (d *Domain) Refusals() []hints.Refusal {
	if d.broker == nil {
		return nil
	}
	return d.broker.Refusals()
}
