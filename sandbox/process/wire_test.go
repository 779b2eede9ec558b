package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/internal/remote"
)

// TestErrorsCrossTheWire: callers tell errors of a runner apart as they do others.
func TestErrorsCrossTheWire(t *testing.T) {
	for name, cause := range causes {
		for _, err := range []error{
			cause, fmt.Errorf("%w: more", cause), &StartError{Command: "c", What: "w", Err: cause, Refused: "hint"}, &sandbox.PathError{Path: "/p", Err: cause},
		} {
			back := errorOf(faultOf(err))
			if !errors.Is(back, cause) || back.Error() != err.Error() || reflect.TypeOf(back) != reflect.TypeOf(err) && err != cause && !strings.Contains(err.Error(), ": more") {
				t.Errorf("%s: %#v came as %#v", name, err, back)
			}
		}
	}
	var start *StartError
	if !errors.As(errorOf(faultOf(&StartError{Command: "c", What: "w", Err: ErrNoProgram, Refused: "hint"})), &start) || start.Hint() != "hint" || start.What != "w" {
		t.Errorf("%+v", start)
	}
	var hinter interface{ Hint() string }
	if err := errorOf(faultOf(&PrivateDirError{"/d", fs.ErrPermission})); !errors.As(err, &hinter) || hinter.Hint() == "" {
		t.Errorf("%#v", err)
	}
	long := errorOf(&remote.Fault{Text: strings.Repeat("\xff", 1<<20), Hint: strings.Repeat("x", 1<<20), Kind: "what"})
	if !errors.As(long, &hinter) || len(long.Error()) > remote.MaxSentence || len(hinter.Hint()) > remote.MaxSentence {
		t.Errorf("%d bytes", len(long.Error()))
	}
}

// TestPlacesOfContainers: what a container has of its own cannot be this machine's.
func TestPlacesOfContainers(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/", "/proc", "/proc/1", "/sys", "/dev", "/usr/.."} {
		for _, cfg := range []Config{{Dir: t.TempDir(), AllowRead: []string{path}}, {Dir: path}} {
			cfg.Container = Container{Image: "image", Engine: program}
			if c, err := NewCommands(cfg); err == nil {
				_ = c.Close()
				t.Errorf("%+v is taken", cfg)
			} else if !strings.Contains(err.Error(), "--container") {
				t.Error(err)
			}
		}
	}
}
