package tree

import (
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/windows"
)

// StartGroup starts a program in a job object of its own: what it starts is in the job, too, and cannot leave it.
// The server holds the only handle of the job, so that all of it ends with the server, however that ends.
func StartGroup(l Launch, _ *Watchdog, _ bool) (Tree, error) {
	job, err := newJobObject()
	if err != nil {
		return nil, err
	}
	// It runs nothing before it is in the job, and shows no window: programs of the console have one that nobody sees.
	attr := &syscall.SysProcAttr{HideWindow: true, CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NO_WINDOW}
	p, err := os.StartProcess(l.Path, l.Argv, &os.ProcAttr{Dir: l.Dir, Env: l.Env, Files: l.Files[:], Sys: attr})
	if err != nil {
		job.Release()
		return nil, err
	}
	if err := job.take(p); err != nil {
		_ = p.Kill() // it is not in the job
		job.Release()
		_, _ = p.Wait()
		return nil, err
	}
	job.p = p
	return job, nil
}

// jobProcesses is how many processes a job has at most: more than any build runs at once, fewer than exhaust the machine.
const jobProcesses = 4096

// A jobObject is a tree that Windows keeps together.
type jobObject struct {
	p *os.Process

	mu     sync.Mutex
	handle windows.Handle // 0 once it is released
}

// newJobObject makes an empty job, whose processes end with its last handle and show no dialog when they crash.
func newJobObject() (*jobObject, error) {
	handle, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, os.NewSyscallError("CreateJobObject", err)
	}
	j := &jobObject{handle: handle}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{
		LimitFlags:         windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | windows.JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION | windows.JOB_OBJECT_LIMIT_ACTIVE_PROCESS,
		ActiveProcessLimit: jobProcesses,
	}}
	if err := setJobLimits(handle, &limits); err != nil {
		j.Release()
		return nil, err
	}
	return j, nil
}

// take puts a process that was started suspended into the job, and lets it run.
func (j *jobObject) take(p *os.Process) error {
	var err error
	if lost := p.WithHandle(func(handle uintptr) {
		if err = windows.AssignProcessToJobObject(j.handle, windows.Handle(handle)); err != nil {
			err = os.NewSyscallError("AssignProcessToJobObject", err)
		}
	}); lost != nil {
		return lost
	}
	if err != nil {
		return err
	}
	return resume(uint32(p.Pid))
}

// resume lets the threads of a process run that was started suspended; it has one.
func resume(pid uint32) error {
	threads, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return os.NewSyscallError("CreateToolhelp32Snapshot", err)
	}
	defer windows.CloseHandle(threads)
	resumed := false
	entry := windows.ThreadEntry32{}
	entry.Size = threadEntrySize
	for err = windows.Thread32First(threads, &entry); err == nil; err = windows.Thread32Next(threads, &entry) {
		if entry.OwnerProcessID != pid {
			continue
		}
		thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, entry.ThreadID)
		if err != nil {
			return os.NewSyscallError("OpenThread", err)
		}
		_, err = windows.ResumeThread(thread)
		windows.CloseHandle(thread)
		if err != nil {
			return os.NewSyscallError("ResumeThread", err)
		}
		resumed = true
	}
	if !resumed {
		return os.NewSyscallError("Thread32Next", err)
	}
	return nil
}

func (j *jobObject) Wait() Ending {
	state, err := j.p.Wait()
	if err != nil {
		return Ending{Code: -1}
	}
	return Ending{Code: state.ExitCode()}
}

// Signal ends the tree at once: there is no signal that asks programs to end, and that all of them know.
func (j *jobObject) Signal(syscall.Signal) { j.Kill() }

// killedCode is the exit code of what is killed, as of a program that SIGKILL ends elsewhere.
const killedCode = 128 + 9

func (j *jobObject) Kill() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.handle != 0 {
		_ = windows.TerminateJobObject(j.handle, killedCode)
	}
}

func (j *jobObject) Alive() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.handle != 0 && activeProcesses(j.handle) > 0
}

func (j *jobObject) Survivors() bool { return j.Alive() }

// Release ends what is left, too: the handle is the last one.
func (j *jobObject) Release() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.handle != 0 {
		_ = windows.CloseHandle(j.handle)
		j.handle = 0
	}
}

// A Watchdog is not needed here: jobs end with the server.
type Watchdog struct{}

// Start, DirBegins, DirEnds and Close do nothing.
func (*Watchdog) Start()           {}
func (*Watchdog) DirBegins(string) {}
func (*Watchdog) DirEnds(string)   {}
func (*Watchdog) Close()           {}

// Helpers does nothing here: there are no groups to guard.
func Helpers() {}
