package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/internal/cgroup"
	"github.com/perstack-ai/perstack-base/sandbox/internal/remote"
	"github.com/perstack-ai/perstack-base/sandbox/process/capture"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/containers"
	"github.com/perstack-ai/perstack-base/sandbox/process/quota"
)

// A runner is the inside of a container: the same Commands as outside, behind a
// stream of bytes. It is the first process there, and its end is that of all others.
type runner struct {
	out      *remote.Writer
	commands *Commands
	heard    atomic.Int32 // beats since the server was heard

	mu     sync.Mutex
	shells map[uint64]*Shell
	jobs   map[uint64]*runnerJob
	stdin  map[uint64][]byte // of commands that are about to come
}

// A runnerJob is one command of the server's.
type runnerJob struct {
	number uint64
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	running *Running // of a command that goes on, once it was started
}

// ErrSilence: a runner has not heard from its server for too long.
var ErrSilence = fmt.Errorf("nothing was heard from the server for %v", remote.Silence)

// ServeRunner runs the commands that a server sends through in, until that ends or
// is silent for too long; then it kills all of them. It is for a process of its own.
func ServeRunner(in io.Reader, out io.Writer) error {
	ignoreSignals()
	frames, writer := remote.NewReader(in, remote.MaxFromServer), remote.NewWriter(out, remote.MaxFromRunner)
	m, err := frames.Read()
	if err != nil {
		return fmt.Errorf("no hello: %w", err)
	}
	if m.Type != remote.TypeHello {
		return fmt.Errorf("%q came before hello", m.Type)
	}
	r := &runner{out: writer, shells: map[uint64]*Shell{}, jobs: map[uint64]*runnerJob{}, stdin: map[uint64][]byte{}}
	conn := containers.DialDirect(m.Hello)
	if err := r.welcome(m.Hello, conn != nil); err != nil {
		return err
	}
	ended := make(chan error, 2) // one for each stream
	if conn != nil {
		left := frames
		go func() { ended <- endOfServer(containers.EndOf(left)) }()
		frames, r.out = remote.NewReader(conn, remote.MaxFromServer), remote.NewWriter(conn, remote.MaxFromRunner)
	}
	go func() { ended <- r.serve(frames) }()
	go r.beat(ended)
	err = <-ended
	r.end()
	return err
}

// ignoreSignals: the first process of a container gets those signals of its
// commands that it does not leave to the system.
func ignoreSignals() { signal.Notify(make(chan os.Signal, 1)) }

// welcome prepares to run commands, and tells what came of that.
func (r *runner) welcome(h *remote.Hello, direct bool) error {
	w := &remote.Welcome{Version: remote.Version, Direct: direct, Machine: runtime.GOOS + "/" + runtime.GOARCH}
	canary, _ := os.ReadFile(filepath.Join(string(h.Tree), canaryName))
	w.Canary = string(canary[:min(len(canary), maxCanary)])
	info, err := os.Stat(string(h.Workspace))
	w.Sees = err == nil && info.IsDir()
	if h.Version != remote.Version {
		w.Failed = fmt.Sprintf("the server speaks version %d of the protocol, and perstack-base in the container version %d", h.Version, remote.Version)
	} else if err := r.prepare(h); err != nil {
		w.Failed = err.Error()
	} else {
		r.tellWalls(w)
	}
	return r.out.Write(&remote.Message{Type: remote.TypeWelcome, Welcome: w})
}

// tellWalls tells what confines commands here, and which limit does not.
func (r *runner) tellWalls(w *remote.Welcome) {
	if ok, why := r.commands.Confined(); ok {
		w.Confined = string(r.commands.confinement.decision.tier)
	} else {
		w.Why = remote.Clip(why)
	}
	q := r.commands.cfg.Quota
	memory, processes, cpus := cgroup.Around().Keeps(cgroup.Limits{Memory: q.MaxMemory, Processes: asked(q.MaxProcesses), CPUs: q.MaxCPUs})
	switch {
	case !memory:
		w.Unkept = quota.MaxMemoryFlag
	case !processes:
		w.Unkept = quota.MaxProcessesFlag
	case !cpus:
		w.Unkept = quota.MaxCPUsFlag
	}
}

// asked is how many processes the engine was told to let the container have.
func asked(processes int) int {
	if processes == 0 {
		return 0
	}
	return processes + containers.RunnerThreads
}

func (r *runner) prepare(h *remote.Hello) error {
	cfg, err := insideConfig(h)
	if err == nil {
		r.commands, err = NewCommands(cfg)
	}
	return err
}

// serve takes messages until there are no more, and never waits for a command.
func (r *runner) serve(frames *remote.Reader) error {
	for {
		m, err := frames.Read()
		if err != nil {
			return endOfServer(err)
		}
		r.heard.Store(0)
		if r.commands == nil {
			continue // the server knows
		}
		if err := r.take(m); err != nil {
			return err
		}
	}
}

// endOfServer is the error of a stream that ended: nil when its server has closed it.
func endOfServer(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (r *runner) take(m *remote.Message) error {
	switch m.Type {
	case remote.TypeBeat:
	case remote.TypeStdin:
		r.mu.Lock()
		r.stdin[m.Command] = append(r.stdin[m.Command], m.Body...)
		r.mu.Unlock()
	case remote.TypeRun, remote.TypeStart:
		r.begin(m)
	case remote.TypeClose:
		go r.close(m)
	case remote.TypeCancel:
		if j := r.job(m.Command); j != nil {
			j.cancel(context.Canceled)
		}
	case remote.TypeInput, remote.TypeSignal, remote.TypeAsk:
		go r.reply(m)
	default:
		return fmt.Errorf("a message of type %q, which a runner does not take", m.Type)
	}
	return nil
}

// beat tells the server that this process lives, and ends it when the server is
// silent. It counts its own beats and asks no clock: a container that was paused, or
// a machine that is too busy, has not been silent.
func (r *runner) beat(ended chan<- error) {
	for range time.Tick(remote.Beat) {
		_ = r.out.Write(&remote.Message{Type: remote.TypeBeat})
		if r.heard.Add(1) > int32(remote.Silence/remote.Beat) {
			select {
			case ended <- ErrSilence:
			default:
			}
			return
		}
	}
}

// end kills everything.
func (r *runner) end() {
	if r.commands == nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.commands.Kill()
		_ = r.commands.Close()
	}()
	select {
	case <-done:
	case <-time.After(containers.RunnerEnd):
	}
}

// shell is the server's shell of that number.
func (r *runner) shell(number uint64) *Shell {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.shells[number]
	if s == nil {
		s = r.commands.NewShell()
		r.shells[number] = s
	}
	return s
}

func (r *runner) job(number uint64) *runnerJob {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.jobs[number]
}

func (r *runner) forget(j *runnerJob) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.jobs, j.number)
}

// begin starts a command, on the side.
func (r *runner) begin(m *remote.Message) {
	ctx, cancel := context.WithCancelCause(context.Background())
	j := &runnerJob{number: m.Command, cancel: cancel}
	r.mu.Lock()
	c := commandOf(m.Start, r.stdin[m.Command])
	delete(r.stdin, m.Command)
	r.jobs[m.Command] = j
	r.mu.Unlock()
	shell := r.shell(m.Shell)
	if m.Type == remote.TypeRun {
		go r.run(ctx, shell, j, c)
	} else {
		go r.start(ctx, shell, j, c)
	}
}

// tell sends one message about a command. Where it cannot be sent the stream is at
// its end, and everything soon.
func (r *runner) tell(j *runnerJob, m *remote.Message) {
	m.Command = j.number
	_ = r.out.Write(m)
}

// close ends a shell.
func (r *runner) close(m *remote.Message) {
	r.mu.Lock()
	s := r.shells[m.Shell]
	delete(r.shells, m.Shell)
	r.mu.Unlock()
	if s != nil {
		_ = s.Close()
	}
	_ = r.out.Write(&remote.Message{Type: remote.TypeAnswer, Question: m.Question})
}

// reply answers a question about a command that goes on.
func (r *runner) reply(m *remote.Message) {
	answer := &remote.Message{Type: remote.TypeAnswer, Question: m.Question}
	var running *Running
	if j := r.job(m.Command); j != nil {
		j.mu.Lock()
		running = j.running
		j.mu.Unlock()
	}
	switch {
	case running == nil:
		answer.Fault = faultOf(ErrInputEnded)
	case m.Type == remote.TypeInput:
		if err := running.put(m.Body, m.Last); err != nil {
			answer.Fault = faultOf(err)
		}
	case m.Type == remote.TypeSignal:
		_ = running.Kill(context.Background(), syscall.Signal(m.Signal))
	default:
		n := running.Needs()
		answer.Needs = &remote.Needs{Input: n.Input, Quiet: n.Quiet}
	}
	_ = r.out.Write(answer)
}

// run runs a command to its end.
func (r *runner) run(ctx context.Context, shell *Shell, j *runnerJob, c Command) {
	defer r.forget(j)
	defer j.cancel(nil)
	told := func() {}
	if c.Tail != nil {
		told = r.followTail(j, c.Tail)
	}
	res, err := shell.Run(ctx, c)
	told()
	if err != nil {
		r.tell(j, &remote.Message{Type: remote.TypeFault, Fault: faultOf(err)})
		return
	}
	for i, out := range [2]capture.Output{res.Stdout, res.Stderr} {
		r.send(j, i, false, out.Head)
		r.send(j, i, true, out.Tail)
	}
	r.tell(j, &remote.Message{Type: remote.TypeResult, Result: resultOf(res)})
}

// resultOf is how a command ended, on the wire.
func resultOf(res Result) *remote.Result {
	out := &remote.Result{
		ExitCode: res.ExitCode, Signal: res.Signal, TimedOut: res.TimedOut, Cancelled: res.Cancelled, Duration: res.Duration,
		Total:     [2]int64{res.Stdout.Total, res.Stderr.Total},
		TextBytes: [2]int64{res.Stdout.TextBytes, res.Stderr.TextBytes},
	}
	for _, sentence := range res.Refused[:min(len(res.Refused), remote.MaxRefused)] {
		out.Refused = append(out.Refused, remote.Clip(sentence))
	}
	return out
}

// send sends output in pieces that fit.
func (r *runner) send(j *runnerJob, stream int, last bool, b []byte) {
	for len(b) > 0 {
		n := min(len(b), remote.MaxBody)
		r.tell(j, &remote.Message{Type: remote.TypeOutput, Stream: stream, Last: last, Body: b[:n]})
		b = b[n:]
	}
}

// followTail tells the last line of a command while it changes, until told is called.
func (r *runner) followTail(j *runnerJob, tail *capture.Tail) (told func()) {
	var version int64
	var timer *time.Timer
	var mu sync.Mutex
	over := false
	tell := func() {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		if line, now := tail.Last(); now != version {
			version = now
			r.tell(j, &remote.Message{Type: remote.TypeTail, Body: []byte(line)})
		}
		timer.Reset(containers.TailEvery)
	}
	mu.Lock()
	timer = time.AfterFunc(containers.TailEvery, tell)
	mu.Unlock()
	return func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		timer.Stop()
	}
}

// start starts a command that goes on, and tells what becomes of it.
func (r *runner) start(ctx context.Context, shell *Shell, j *runnerJob, c Command) {
	defer r.forget(j)
	c.copyTo = func(piece []byte) { r.send(j, 0, false, piece) }
	running, err := shell.start(ctx, c)
	if err != nil {
		r.tell(j, &remote.Message{Type: remote.TypeFault, Fault: faultOf(cmp.Or(context.Cause(ctx), err))})
		return
	}
	j.mu.Lock()
	j.running = running
	j.mu.Unlock()
	r.tell(j, &remote.Message{Type: remote.TypeStarted})
	<-running.Ended()
	res, _ := running.Result()
	r.tell(j, &remote.Message{Type: remote.TypeResult, Result: resultOf(res)})
	<-running.process.(localProcess).drained
	r.tell(j, &remote.Message{Type: remote.TypeGone})
}

// TakeStreams takes standard input and output for the server alone: what commands get
// of this process are the null device and standard error.
func TakeStreams() (in, out *os.File, err error) { return remote.TakeStreams() }
