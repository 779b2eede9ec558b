package files

import (
	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/internal/disk"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// TestWriterProcess is no test: it is the process of TestKilledWriter that
// writes one file again and again.
func TestWriterProcess(t *testing.T) {
	ws := os.Getenv("SANDBOX_TEST_WRITER")
	if ws == "" {
		t.Skip("runs only as a child of TestKilledWriter")
	}
	writeForEver(ws)
}

const killedSize = 4 << 20

func writeForEver(ws string) {
	f, err := Open(ws, sandbox.Limits{})
	if err != nil {
		panic(err)
	}
	for i := 0; ; i++ {
		data := make([]byte, killedSize)
		for j := range data {
			data[j] = 'a' + byte(i%2)
		}
		if _, err := f.Write("d/f", data); err != nil {
			panic(err)
		}
	}
}

// TestKilledWriter: SIGKILL leaves the old content or the new, and at most a
// temp file, which the next write beside it removes.
func TestKilledWriter(t *testing.T) {
	w := newWorld(t)
	left := 0
	for round := range 12 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestWriterProcess$")
		cmd.Env = append(os.Environ(), "SANDBOX_TEST_WRITER="+w.ws)
		must(t, cmd.Start())
		for waiting := true; waiting; {
			_, err := os.Stat(w.path("d/f"))
			waiting = err != nil
		}
		time.Sleep(time.Duration(5+round*3) * time.Millisecond)
		must(t, cmd.Process.Kill())
		_ = cmd.Wait()

		got, err := os.ReadFile(w.path("d/f"))
		must(t, err)
		if len(got) != killedSize {
			t.Fatalf("after the kill: %d bytes", len(got))
		}
		for _, c := range got {
			if c != got[0] {
				t.Fatal("after the kill: a mixture")
			}
		}
		if _, err := os.Lstat(w.path("d/" + disk.TempPrefix + "0" + disk.TempSuffix)); err == nil {
			left++
		}
		if _, err = w.fs.Write("d/other", nil); err != nil {
			t.Fatal(err)
		}
		w.noTemps()
	}
	t.Logf("%d of 12 kills left a temp file", left)
}

// A temp whose owner lives is respected, whatever else has its name too.
func TestTempNamesInUse(t *testing.T) {
	w := newWorld(t)
	name := disk.TempPrefix + strconv.Itoa(0) + disk.TempSuffix
	for what, occupy := range map[string]func() func(){
		"locked": func() func() {
			file, err := os.Create(w.path(name))
			must(t, err)
			if !disk.LockFile(file, false) {
				t.Fatal("cannot lock")
			}
			return func() { file.Close() }
		},
		"directory": func() func() { must(t, os.Mkdir(w.path(name), 0o755)); return func() {} },
		"link":      func() func() { w.link(name, w.canary); return func() {} },
	} {
		release := occupy()
		if _, err := w.fs.Write("f", []byte(what)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		w.want("f", what)
		if _, err := os.Lstat(w.path(name)); err != nil {
			t.Errorf("%s was removed", what)
		}
		release()
		must(t, os.Remove(w.path(name)))
	}
	w.file(name, "left by a dead process")
	_, err := w.fs.Write("f", []byte("x"))
	must(t, err)
	w.clean()
}

func TestOpenRegular(t *testing.T) {
	w := newWorld(t)
	w.file("f", "F")
	w.file("d/x", "")
	w.link("leak", w.canary)
	root := w.fs.cur.Load().root
	file, err := disk.OpenRegular(root, "f", os.O_RDONLY)
	must(t, err)
	file.Close()
	for _, name := range []string{"d", "leak", "none"} {
		if file, err := disk.OpenRegular(root, name, os.O_RDONLY); err == nil {
			file.Close()
			t.Errorf("%s was opened", name)
		}
	}
}

func TestStageFailureLeavesNothing(t *testing.T) {
	w := newWorld(t)
	root, err := os.OpenRoot(w.ws)
	must(t, err)
	defer root.Close()
	tmp, err := disk.NewTemp(root, func(name string) (*os.File, error) {
		return root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	})
	must(t, err)
	if _, err := root.Lstat(tmp.Name); err != nil {
		t.Fatal(err)
	}
	must(t, tmp.Discard())
	if _, err := root.Lstat(tmp.Name); err == nil {
		t.Error("discard left the file")
	}
	if _, err := disk.NewTemp(root, func(string) (*os.File, error) { return nil, fs.ErrPermission }); err == nil {
		t.Error("a refusal to create was ignored")
	}
}
