package files

import (
	"testing"
	"time"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
)

func TestVersionTellsContentsApart(t *testing.T) {
	testlevel.NotQuick(t, "waits until a change is old")
	w := newWorld(t)
	w.file("f", "one")
	version := func() (any, bool) {
		f, err := w.fs.Open("f")
		must(t, err)
		defer f.Close()
		return f.Version()
	}
	if v, ok := version(); ok {
		t.Errorf("of a file that changed a moment ago: %v", v)
	}
	var before any
	for ok := false; !ok; time.Sleep(100 * time.Millisecond) {
		before, ok = version()
	}
	if again, ok := version(); !ok || again != before {
		t.Errorf("%v, then %v", before, again)
	}
	w.file("f", "two")
	if after, _ := version(); after == before {
		t.Errorf("another content is %v as well", after)
	}
}
