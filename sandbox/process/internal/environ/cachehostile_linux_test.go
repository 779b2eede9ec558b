package environ

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"
)

// TestStoreThatIsFilledMeanwhile: a command that keeps filling a directory where a link to
// the user's store belongs does not keep the next command from beginning.
func TestStoreThatIsFilledMeanwhile(t *testing.T) {
	home, cache := t.TempDir(), t.TempDir()
	for _, dir := range []string{".local/share/pnpm/store/v10/files", ".cache/pnpm/v10"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	theirs := filepath.Join(cache, "pnpm-offline/store/v10/files")
	if err := os.MkdirAll(theirs, 0o700); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var filling sync.WaitGroup
	defer filling.Wait()
	defer close(stop)
	for i := range 4 {
		filling.Go(func() {
			dir, err := os.OpenRoot(theirs) // as a command has it that was there before
			if err != nil {
				return
			}
			defer dir.Close()
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
					_ = dir.Mkdir(strconv.Itoa(i)+"-"+strconv.Itoa(n), 0o700)
				}
			}
		})
	}
	time.Sleep(100 * time.Millisecond)
	done := make(chan struct{})
	go func() {
		defer close(done)
		offlinePNPM(cache, home, nil, Host{Safe: func(string) bool { return true }}, map[string]string{})
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("a command waits for as long as another one likes")
	}
}
