package containers

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"github.com/perstack-ai/perstack-base/sandbox/process/internal/environ"
	"github.com/perstack-ai/perstack-base/sandbox/scratch"
)

func TestMounts(t *testing.T) {
	dir := t.TempDir()
	m := Mounts{
		{from: dir, At: "/w", Write: true, every: true}, {from: dir + "/in", At: "/w/in"}, {from: dir + "/other", At: "/w/out"},
		{from: "/r", At: "/r"}, {from: "/r/work", At: "/r/work", Write: true}, {from: "/r/lib", At: "/r/lib"}, {from: "/r", At: "/r"},
	}.tidy()
	var at []string
	for _, one := range m {
		at = append(at, one.At)
	}
	if got := strings.Join(at, " "); got != "/r /r/work /w /w/out" {
		t.Error(got)
	}
	if got := m.Writable(); !reflect.DeepEqual(got, []string{"/w"}) {
		t.Errorf("every command may write %v", got)
	}
	secret := filepath.Join(dir, "there")
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		needs Places
		want  bool
	}{
		{Places{}, true}, {Places{Read: []string{"/r/x", "/w/y"}}, true}, {Places{Write: []string{"/w/z", "/r/work/a"}}, true},
		{Places{Read: []string{secret}}, false}, {Places{Write: []string{secret}}, false}, {Places{Read: []string{"/no/such/thing"}}, true},
	} {
		if m.Cover(one.needs) != one.want {
			t.Errorf("%v: %v", one.needs, !one.want)
		}
	}
}

// TestMountFlags: what an engine reads is what was meant, whatever a path looks like.
func TestMountFlags(t *testing.T) {
	for _, path := range []string{`/a,b"c`, "/a\r", "/a\rb", "/a\nb", "/a\n", " /a ", "/a=b", `/"`, "/a,readonly", "/x:ro"} {
		flag, err := (Mount{from: path, At: path}).flag()
		if err != nil {
			t.Errorf("%q: %v", path, err)
			continue
		}
		fields, err := csv.NewReader(strings.NewReader(flag)).Read()
		if want := []string{"type=bind", "source=" + path, "target=" + path, "readonly"}; err != nil || !reflect.DeepEqual(fields, want) {
			t.Errorf("%q is read as %q (%v)", path, fields, err)
		}
		writable, _ := (Mount{from: path, At: path, Write: true}).flag()
		if fields, err := csv.NewReader(strings.NewReader(writable)).Read(); err != nil || !reflect.DeepEqual(fields, []string{"type=bind", "source=" + path, "target=" + path}) {
			t.Errorf("%q is read as %q (%v)", path, fields, err)
		}
	}
	for _, path := range []string{"/a\r\nb", "/a\xff"} {
		if flag, err := (Mount{from: path, At: "/x", Write: true}).flag(); err == nil {
			t.Errorf("%q is given to an engine as %q, which is another path to it", path, flag)
		}
	}
}

// TestTmpOfContainers: where /tmp is this machine's it is not hidden by another one.
func TestTmpOfContainers(t *testing.T) {
	for _, cfg := range []Config{{Dir: "/tmp"}, {Dir: t.TempDir(), AllowWrite: []string{"/tmp/"}}, {Dir: t.TempDir()}} {
		cfg.Image, cfg.Engine = "image", "/bin/sh"
		cfg.Policy, cfg.Repository = func() policy.Policy { return policy.Policy{} }, func() environ.Repository { return environ.Repository{} }
		cfg.Cache, cfg.TreeAt = func() *scratch.Cache { return nil }, func(tree string) string { return tree }
		f, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		b := &Container{fleet: f, Mounts: f.MountsFor(), Name: newContainerName(), Tree: "/tree"}
		args, err := f.runArgs(b)
		if err != nil {
			t.Fatal(err)
		}
		real := slices.Contains(args, "type=bind,source=/tmp,target=/tmp")
		if own := slices.Contains(args, "--tmpfs"); own == real || real != (cfg.Dir == "/tmp" || cfg.AllowWrite != nil) {
			t.Errorf("%+v: %q", cfg, args)
		}
		f.Close()
	}
}

// TestAbandonedContainers: only a container whose server is certainly gone is removed.
func TestAbandonedContainers(t *testing.T) {
	own := newContainerName()
	if abandonedName(own) {
		t.Errorf("%s is this process's", own)
	}
	for _, foreign := range []string{"perstack-base", "web", "perstack-base-x-1-2-3-4"} {
		if abandonedName(foreign) {
			t.Errorf("%s is nobody's to remove", foreign)
		}
	}
	if bootID() == "0" {
		return // nobody tells here
	}
	child := exec.Command("sleep", "600")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("perstack-base-%s-00", serverMark(child.Process.Pid))
	alive := abandonedName(name)
	_ = child.Process.Kill()
	_ = child.Wait()
	if alive || !abandonedName(name) {
		t.Errorf("%s: %v while it runs, %v when it has ended", name, alive, abandonedName(name))
	}
	const machine, boot, namespace, began = 2, 3, 4, 6 // of the name's parts
	parts := strings.Split(own, "-")
	parts[boot] = "00000000"
	if !abandonedName(strings.Join(parts, "-")) {
		t.Error("one of another boot is abandoned")
	}
	parts[machine] = "00000000"
	if abandonedName(strings.Join(parts, "-")) {
		t.Error("whether a server of another machine or user runs is not known here: they may share the daemon")
	}
	parts = strings.Split(own, "-")
	parts[namespace], parts[began] = "1", "1"
	if abandonedName(strings.Join(parts, "-")) {
		t.Error("what another namespace's numbers mean is not known here")
	}
}

// TestEngineFaults: what engines say is told as what is wrong and what to do.
func TestEngineFaults(t *testing.T) {
	e := &Engine{Command: "docker"}
	for said, want := range map[string]string{
		"docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?":                                     "does not answer",
		"permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock":                                          "may not use",
		"Unable to find image 'x:y' locally\ndocker: Error response from daemon: pull access denied for x, repository does not exist":                   "there is no image x:y",
		"Unable to find image 'x:y' locally\ndocker: Error response from daemon: Get \"https://r/v2/\": dial tcp: lookup r on 1.1.1.1:53: no such host": "cannot be fetched",
		"docker: no matching manifest for linux/arm64/v8 in the manifest list entries":                                                                  "another machine",
		"exec /.perstack-base: exec format error": "another machine",
		"docker: Error response from daemon: invalid mount config for type \"bind\": bind source path does not exist: /w": "does not see",
		"Error: statfs /w: no such file or directory": "does not see",
		"runc create failed: unable to start container process: exec: \"perstack-base\": executable file not found in $PATH": "no perstack-base on its PATH",
		"docker: invalid reference format: repository name must be lowercase":                                                "not the name of an image",
		"write /var/lib/docker/tmp/x: no space left on device":                                                               "no space left",
		"Error: something nobody has seen":                                                                                   "cannot run a container",
	} {
		var fault *Error
		if err := e.failed("x:y", said, lastLine(said)); !errors.As(err, &fault) || !strings.Contains(fault.What, want) || fault.Way == "" || strings.Contains(fault.What+fault.Way, "IMAGE") || strings.Contains(fault.What+fault.Way, "ENGINE") {
			t.Errorf("%s: %v %v", said, err, fault.Hint())
		}
	}
}

// TestEngineFindsNoHelpersOfCommands: what an engine runs by its name, such as a helper
// that knows passwords, is not looked for where commands write.
func TestEngineFindsNoHelpersOfCommands(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	link := filepath.Join(other, "bin")
	if err := os.Symlink(filepath.Join(dir, "bin"), link); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", strings.Join([]string{filepath.Join(dir, "bin"), "/usr/bin", link, "", ".", "/bin"}, ":"))
	t.Chdir(dir)
	e := &Engine{path: "/bin/sh", Command: "sh"}
	if err := e.apartFrom([]string{dir}); err != nil {
		t.Fatal(err)
	}
	out, _, err := e.ask(t.Context(), "-c", "echo $PATH")
	if err != nil || out != "/usr/bin:/bin" {
		t.Errorf("PATH is %q (%v)", out, err)
	}
}
