package files

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
)

// TestSwapRace: somebody exchanges a directory for a link to the outside as
// fast as the kernel can, while files below it are read and written. The FS
// never touches the outside; a check before the use, run beside it, does.
func TestSwapRace(t *testing.T) {
	for _, long := range []bool{false, true} {
		longWay = long
		swapRace(t)
	}
	longWay = false
}

// raceTime is how long a race is run at least.
func raceTime() time.Duration {
	switch {
	case testlevel.Quick():
		return 200 * time.Millisecond
	case testlevel.All():
		return 2 * time.Second
	}
	return time.Second
}

func swapRace(t *testing.T) {
	w := newWorld(t)
	w.file("d/canary", "inside")
	w.file("d/plain", "inside")
	w.link("evil", w.out)
	var stop atomic.Bool
	var swaps, calls, escaped, refused atomic.Int64
	var all sync.WaitGroup
	loop := func(do func()) {
		all.Go(func() {
			for !stop.Load() {
				do()
			}
		})
	}
	loop(func() {
		if unix.Renameat2(unix.AT_FDCWD, w.path("d"), unix.AT_FDCWD, w.path("evil"), unix.RENAME_EXCHANGE) == nil {
			swaps.Add(1)
		}
	})
	loop(func() { // the control
		real, err := filepath.EvalSymlinks(w.path("d/canary"))
		if err != nil || !strings.HasPrefix(real, w.ws) {
			return
		}
		if got, _ := os.ReadFile(w.path("d/canary")); bytes.Contains(got, []byte("CANARY")) {
			escaped.Add(1)
		}
	})
	guarded := func(name string, do func() ([]byte, error)) {
		loop(func() {
			calls.Add(1)
			got, err := do()
			if err != nil {
				refused.Add(1)
			}
			if bytes.Contains(got, []byte("CANARY")) {
				t.Errorf("%s read the outside", name)
				stop.Store(true)
			}
		})
	}
	guarded("ReadFile", func() ([]byte, error) { return w.fs.ReadFile("d/canary", 1<<20) })
	guarded("Dir", func() ([]byte, error) {
		d, err := w.fs.OpenDir("d")
		if err != nil {
			return nil, err
		}
		defer d.Close()
		file, err := d.OpenFile("canary")
		if err != nil {
			return nil, err
		}
		defer file.Close()
		return io.ReadAll(file)
	})
	guarded("Edit", func() (got []byte, err error) {
		_, err = w.fs.Edit("d/canary", func(old []byte) ([]byte, error) {
			got = old
			return append(old[:min(len(old), 100)], 'x'), nil
		})
		return got, err
	})
	guarded("Write", func() ([]byte, error) { _, err := w.fs.Write("d/new", []byte("inside")); return nil, err })
	guarded("Transact", func() (got []byte, err error) {
		err = w.fs.Transact(nil, func(tx *Tx) error {
			if got, err = tx.ReadFile("d/plain"); err == nil {
				err = tx.Remove("d/plain")
			}
			if err == nil {
				err = tx.Write("d/plain", got, nil)
			}
			return err
		})
		return got, err
	})
	deadline := time.Now().Add(time.Minute)
	for begun := time.Now(); !stop.Load() && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if escaped.Load() > 0 && calls.Load() > 5000 && time.Since(begun) > raceTime() {
			break
		}
	}
	stop.Store(true)
	all.Wait()
	if escaped.Load() == 0 {
		t.Error("the unguarded control never escaped: the race proves nothing")
	}
	w.clean()
	t.Logf("%d swaps, %d guarded calls (%d refused), 0 escapes; the control escaped %d times",
		swaps.Load(), calls.Load(), refused.Load(), escaped.Load())
}
