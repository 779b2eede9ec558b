//go:build !unix

package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
)

// Without process groups a tree is the program alone.
type groupStarter struct {
	guard  *watchdog
	inside bool
}

func (groupStarter) start(l launch) (tree, error) {
	p, err := os.StartProcess(l.path, l.argv, &os.ProcAttr{Dir: l.dir, Env: l.env, Files: l.files[:]})
	if err != nil {
		return nil, err
	}
	return &single{p: p}, nil
}

type single struct {
	p     *os.Process
	ended atomic.Bool
}

func (s *single) wait() ending {
	state, err := s.p.Wait()
	s.ended.Store(true)
	if err != nil {
		return ending{code: -1}
	}
	return ending{code: state.ExitCode()}
}

func (s *single) signal(syscall.Signal) { _ = s.p.Kill() }
func (s *single) kill()                 { _ = s.p.Kill() }
func (s *single) alive() bool           { return !s.ended.Load() }
func (*single) survivors() bool         { return false }
func (*single) release()                {}

type strays struct {
	tmp string
	all bool
}

func (strays) wait() ending          { return ending{} }
func (strays) signal(syscall.Signal) {}
func (strays) kill()                 {}
func (strays) alive() bool           { return false }
func (strays) survivors() bool       { return false }
func (strays) release()              {}

// mayExecute goes by the endings that the system runs.
func mayExecute(file string) bool {
	return strings.Contains(".com.exe.bat.cmd", strings.ToLower(filepath.Ext(file)))
}

func drain(f *os.File, to *capture) {
	defer f.Close()
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	for {
		n, err := f.Read(*buf)
		_, _ = to.Write((*buf)[:n])
		if err != nil {
			return
		}
	}
}

type watchdog struct{}

func (*watchdog) dirBegins(string) {}
func (*watchdog) dirEnds(string)   {}
func (*watchdog) close()           {}

// Helpers does nothing here: there are no groups to guard.
func Helpers() {}
