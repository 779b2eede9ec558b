package kernels

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// An apt fetches packages of one architecture. It needs no rights, and what it
// keeps for a foreign architecture lies in a directory of its own, so the machine
// stays as it is.
type apt struct {
	arch    string
	dir     string // what was fetched, kept for the next run
	options []string
}

func newAPT(t *testing.T, arch string) apt {
	t.Helper()
	for _, program := range []string{"apt-get", "apt-cache", "dpkg-deb"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is missing: kernels come from Debian's packages", program)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip(err)
	}
	a := apt{arch: arch, dir: filepath.Join(cache, "perstack-base-kernels", arch)}
	if err := os.MkdirAll(a.dir, 0o755); err != nil {
		t.Skip(err)
	}
	if arch != runtime.GOARCH {
		a.foreign(t)
	}
	return a
}

// foreign gives a lists of packages that are not this machine's.
func (a *apt) foreign(t *testing.T) {
	t.Helper()
	state := filepath.Join(a.dir, "apt")
	for _, dir := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(state, dir), 0o755); err != nil {
			t.Skip(err)
		}
	}
	status := filepath.Join(state, "status") // nothing is installed
	if err := os.WriteFile(status, nil, 0o644); err != nil {
		t.Skip(err)
	}
	for _, option := range []string{"APT::Architecture=" + a.arch, "APT::Architectures=" + a.arch,
		"Dir::State=" + state, "Dir::State::lists=" + state + "/lists", "Dir::State::status=" + status, "Dir::Cache=" + state + "/cache",
		"APT::Sandbox::User=", "Acquire::Languages=none", "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false"} {
		a.options = append(a.options, "-o", option)
	}
	if _, err := a.run("apt-get", "update"); err != nil {
		t.Skipf("apt has no lists for %s: %v", a.arch, err)
	}
}

func (a apt) run(program string, args ...string) (string, error) {
	cmd := exec.Command(program, append(append([]string{}, a.options...), args...)...)
	cmd.Dir = a.dir
	out, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, failed.Stderr)
	}
	return string(out), err
}

// dependency is the package that a package with nothing in it stands for.
func (a apt) dependency(t *testing.T, meta string) string {
	t.Helper()
	out, err := a.run("apt-cache", "depends", meta)
	_, after, found := strings.Cut(out, "Depends: ")
	if err != nil || !found {
		t.Skipf("apt offers no %s for %s (apt-get update?): %v %s", meta, a.arch, err, out)
	}
	return strings.Fields(after)[0]
}

// fetching is held while a package is: machines boot at the same time.
var fetching sync.Mutex

// file fetches a package, takes the one file out of it whose path in the package
// matches, and returns where it is now.
func (a apt) file(t *testing.T, name, pattern string) string {
	t.Helper()
	fetching.Lock()
	defer fetching.Unlock()
	kept := filepath.Join(a.dir, name)
	if _, err := os.Stat(kept); err == nil {
		return kept
	}
	if _, err := a.run("apt-get", "download", name); err != nil {
		t.Skipf("apt does not fetch %s: %v", name, err)
	}
	packages, _ := filepath.Glob(filepath.Join(a.dir, name+"_*.deb")) // the pattern is well formed
	if len(packages) != 1 {
		t.Fatalf("apt fetched %q for %s", packages, name)
	}
	defer os.Remove(packages[0])
	if err := extract(packages[0], pattern, kept); err != nil {
		t.Fatal(err)
	}
	return kept
}

// extract writes the one file of a package that matches.
func extract(deb, pattern, to string) error {
	unpack := exec.Command("dpkg-deb", "--fsys-tarfile", deb)
	files, err := unpack.StdoutPipe()
	if err != nil {
		return err
	}
	if err := unpack.Start(); err != nil {
		return err
	}
	defer func() { _ = unpack.Process.Kill(); _ = unpack.Wait() }()
	for in := tar.NewReader(files); ; {
		header, err := in.Next()
		if err != nil {
			return fmt.Errorf("%s in %s: %w", pattern, deb, err)
		}
		if ok, _ := path.Match(pattern, path.Clean(header.Name)); !ok || header.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		if err := os.WriteFile(to+".part", content, 0o755); err != nil { // one that is cut off is not kept
			return err
		}
		return os.Rename(to+".part", to)
	}
}
