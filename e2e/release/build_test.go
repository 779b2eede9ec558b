package release

import (
	"bytes"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
)

const top = "../.."

// version is what the builds of the tests say that they are.
const version = "1.2.3-test"

// A build is what .goreleaser.yaml says of one.
type build struct {
	Main    string   `yaml:"main"`
	Binary  string   `yaml:"binary"`
	Env     []string `yaml:"env"`
	Flags   []string `yaml:"flags"`
	Ldflags []string `yaml:"ldflags"`
	Goos    []string `yaml:"goos"`
	Goarch  []string `yaml:"goarch"`
}

// theBuild reads the one build of .goreleaser.yaml.
func theBuild(t *testing.T) build {
	t.Helper()
	var config struct{ Builds []build }
	readYAML(t, ".goreleaser.yaml", &config)
	if len(config.Builds) != 1 {
		t.Fatalf(".goreleaser.yaml has %d builds", len(config.Builds))
	}
	return config.Builds[0]
}

func readYAML(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// run builds for one system from the source in dir, as goreleaser would, and returns the program.
func (b build) run(t *testing.T, dir, goos, goarch string, env ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), b.Binary)
	args := slices.Concat([]string{"build"}, b.Flags, []string{"-o", out})
	for _, f := range b.Ldflags {
		f = strings.ReplaceAll(f, "{{ .Version }}", version)
		if strings.Contains(f, "{{") {
			t.Fatalf("the tests do not know what %q means", f)
		}
		args = append(args, "-ldflags", f)
	}
	cmd := exec.Command("go", append(args, b.Main)...)
	cmd.Dir = dir
	cmd.Env = slices.Concat(os.Environ(), []string{"GOFLAGS=", "GOOS=" + goos, "GOARCH=" + goarch}, b.Env, env)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, text)
	}
	return out
}

// TestReproducible: the same source is the same program, wherever it lies. With PERSTACK_BASE_RELEASE=1 the second
// build takes nothing from a cache.
func TestReproducible(t *testing.T) {
	testlevel.Battery(t, "it builds releases")
	b := theBuild(t)
	elsewhere := filepath.Join(t.TempDir(), "another place")
	copySource(t, elsewhere)
	var env []string
	if thorough() {
		env = []string{"GOCACHE=" + filepath.Join(t.TempDir(), "cache")}
	}
	first := read(t, b.run(t, top, runtime.GOOS, runtime.GOARCH))
	second := read(t, b.run(t, elsewhere, runtime.GOOS, runtime.GOARCH, env...))
	if !bytes.Equal(first, second) {
		t.Errorf("two builds differ: %d and %d bytes", len(first), len(second))
	}
	here, err := filepath.Abs(top)
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{here, elsewhere} {
		if bytes.Contains(first, []byte(place)) {
			t.Errorf("the program names the directory %s in which it was built", place)
		}
	}
	if !thorough() {
		return
	}
	b.Flags = slices.DeleteFunc(slices.Clone(b.Flags), func(f string) bool { return f == "-trimpath" })
	if bytes.Equal(read(t, b.run(t, top, runtime.GOOS, runtime.GOARCH)), read(t, b.run(t, elsewhere, runtime.GOOS, runtime.GOARCH))) {
		t.Error("two builds are the same without -trimpath, too: this test sees no difference")
	}
}

// TestVersionOfRelease: a release says which it is.
func TestVersionOfRelease(t *testing.T) {
	testlevel.Battery(t, "it builds releases")
	program := theBuild(t).run(t, top, runtime.GOOS, runtime.GOARCH)
	if got := says(t, program); !strings.HasPrefix(got, "perstack-base v"+version+" ") {
		t.Errorf("--version says %q", got)
	}
}

// TestEverySystem builds what .goreleaser.yaml names, and looks into each file.
func TestEverySystem(t *testing.T) {
	if !thorough() {
		t.Skip("builds for six systems: PERSTACK_BASE_RELEASE=1")
	}
	b := theBuild(t)
	built := 0
	for _, goos := range b.Goos {
		for _, goarch := range b.Goarch {
			if got := systemOf(b.run(t, top, goos, goarch)); got != goos+"/"+goarch {
				t.Errorf("the program for %s/%s is one for %s", goos, goarch, got)
			}
			built++
		}
	}
	if built != 6 {
		t.Errorf("%d programs were built", built)
	}
}

// systemOf tells from its header what a program runs on; of one for Linux that it asks for no loader, too.
func systemOf(path string) string {
	if f, err := elf.Open(path); err == nil {
		defer f.Close()
		if interp := f.Section(".interp"); interp != nil {
			return "linux, linked dynamically"
		}
		return "linux/" + map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}[f.Machine]
	}
	if f, err := macho.Open(path); err == nil {
		defer f.Close()
		return "darwin/" + map[macho.Cpu]string{macho.CpuAmd64: "amd64", macho.CpuArm64: "arm64"}[f.Cpu]
	}
	if f, err := pe.Open(path); err == nil {
		defer f.Close()
		return "windows/" + map[uint16]string{pe.IMAGE_FILE_MACHINE_AMD64: "amd64", pe.IMAGE_FILE_MACHINE_ARM64: "arm64"}[f.Machine]
	}
	return "nothing known"
}

func thorough() bool { return os.Getenv("PERSTACK_BASE_RELEASE") != "" }

// copySource copies what the program is built from.
func copySource(t *testing.T, to string) {
	t.Helper()
	for _, name := range []string{"cmd", "server", "tools", "sandbox", "skillrepo"} {
		if err := os.CopyFS(filepath.Join(to, name), os.DirFS(filepath.Join(top, name))); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"go.mod", "go.sum", "LICENSE"} {
		if err := os.WriteFile(filepath.Join(to, name), read(t, filepath.Join(top, name)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// says is what a program answers to --version.
func says(t *testing.T, program string) string {
	t.Helper()
	out, err := exec.Command(program, "--version").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}
