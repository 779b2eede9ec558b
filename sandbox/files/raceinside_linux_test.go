package files

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
)

// TestSwapRaceInside: somebody exchanges a directory for links to the reserved and
// to a guarded directory of the same workspace. The kernel has nothing against
// that, so it is the FS that must not go there. An os.Root with the same checks
// before its use, run beside it, does.
func TestSwapRaceInside(t *testing.T) {
	testlevel.NotQuick(t, "races for seconds")
	for _, long := range []bool{false, true} {
		longWay = long
		for _, target := range []string{".git", "perstack"} {
			swapRaceInside(t, target)
		}
	}
	longWay = false
}

const raceSecret = "SECRET"

func swapRaceInside(t *testing.T, target string) {
	w := newWorld(t)
	w.fs.Guarded = true
	w.file(target+"/config", raceSecret)
	w.file("x/config", "plain")
	must(t, os.Symlink(target, w.path("y")))
	var stop atomic.Bool
	var control atomic.Int64
	var all sync.WaitGroup
	loop := func(do func()) {
		all.Go(func() {
			for !stop.Load() {
				do()
			}
		})
	}
	loop(func() {
		_ = unix.Renameat2(unix.AT_FDCWD, w.path("x"), unix.AT_FDCWD, w.path("y"), unix.RENAME_EXCHANGE)
	})
	loop(func() {
		root, err := os.OpenRoot(w.ws)
		must(t, err)
		defer root.Close()
		if info, err := root.Lstat("x"); err == nil && info.IsDir() {
			if got, _ := root.ReadFile("x/config"); string(got) == raceSecret {
				control.Add(1)
			}
		}
	})
	// What may be read differs: git's settings are no secret, only kept from change.
	reads := func(name string, do func() ([]byte, error)) {
		loop(func() {
			if got, _ := do(); target == reservedName && bytes.Contains(got, []byte(raceSecret)) {
				t.Errorf("%s read %s", name, target)
				stop.Store(true)
			}
		})
	}
	reads("ReadFile", func() ([]byte, error) { return w.fs.ReadFile("x/config", 100) })
	reads("Dir", func() ([]byte, error) {
		d, err := w.fs.OpenDir("x")
		if err != nil {
			return nil, err
		}
		defer d.Close()
		list, _ := d.Entries()
		if slices.ContainsFunc(list, func(e DirEntry) bool { return strings.HasPrefix(e.Name, "only-there") }) {
			return []byte(raceSecret), nil
		}
		return nil, nil
	})
	w.file(target+"/only-there", "")
	loop(func() { _, _ = w.fs.Write("x/config", []byte("plain")) })
	loop(func() { _, _ = w.fs.Write("x/new/deep", []byte("plain")) })
	loop(func() {
		_ = w.fs.Transact(nil, func(tx *Tx) error { return tx.Write("x/config", []byte("plain"), nil) })
	})
	loop(func() {
		_ = w.fs.Transact(nil, func(tx *Tx) error { return tx.Remove("x/only-there") })
	})
	w.file(target+"/gone", "")
	loop(func() { // fails after it has made a directory, which it takes back
		_ = w.fs.Transact(nil, func(tx *Tx) error {
			return errors.Join(tx.Write("x/gone/f", nil, nil), tx.Write("x/"+strings.Repeat("n", 250)+"/f", nil, nil), tx.Write("x/f/"+strings.Repeat("n", 300), nil, nil))
		})
	})
	loop(func() { // puts a directory in the place of a file
		_ = w.fs.Transact(nil, func(tx *Tx) error {
			return errors.Join(tx.Remove("file"), tx.Write("file/config", []byte("plain"), nil))
		})
	})
	loop(func() {
		if os.Symlink(target, w.path("file")) != nil {
			_ = os.RemoveAll(w.path("file"))
			_ = os.WriteFile(w.path("file"), nil, 0o600)
		}
	})
	begun := time.Now()
	for !stop.Load() && time.Since(begun) < time.Minute && (control.Load() < 20 || time.Since(begun) < raceTime()) {
		time.Sleep(10 * time.Millisecond)
	}
	stop.Store(true)
	all.Wait()
	if control.Load() == 0 {
		t.Error("the unguarded control never got there: the race proves nothing")
	}
	for name, want := range map[string]string{"config": raceSecret, "only-there": "", "gone": ""} {
		if got, err := os.ReadFile(w.path(target + "/" + name)); err != nil || string(got) != want {
			t.Errorf("%s/%s holds %q (%v)", target, name, got, err)
		}
	}
	if _, err := os.Stat(w.path(target + "/new")); err == nil {
		t.Errorf("a directory was made in %s", target)
	}
}
