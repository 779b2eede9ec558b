package release

import (
	"archive/zip"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
)

const module = "github.com/perstack-ai/perstack-base"

// TestInstalledModuleSaysItsVersion installs a version of the module as people do, by go install, from a module proxy
// that is a directory. What it depends on comes from this machine's cache of modules.
func TestInstalledModuleSaysItsVersion(t *testing.T) {
	testlevel.Battery(t, "compiles the module once more")
	const version = "v0.9.9"
	proxy, home := t.TempDir(), t.TempDir()
	publish(t, proxy, version)
	downloaded, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "install", module+"/cmd/perstack-base@"+version)
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "GOBIN="+filepath.Join(home, "bin"), "GOMODCACHE="+filepath.Join(home, "mod"),
		"GOPROXY=file://"+proxy+",file://"+filepath.Join(strings.TrimSpace(string(downloaded)), "cache/download"),
		"GOFLAGS=-trimpath -modcacherw", "GONOSUMDB=*", "CGO_ENABLED=0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := says(t, filepath.Join(home, "bin/perstack-base")); !strings.HasPrefix(got, "perstack-base "+version+" ") {
		t.Errorf("--version says %q", got)
	}
}

// publish writes the files of a module proxy for one version of this module.
func publish(t *testing.T, proxy, version string) {
	t.Helper()
	source := t.TempDir()
	copySource(t, source)
	dir := filepath.Join(proxy, filepath.FromSlash(module), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		version + ".info": `{"Version":"` + version + `","Time":"2026-01-01T00:00:00Z"}`,
		version + ".mod":  string(read(t, filepath.Join(source, "go.mod"))),
		"list":            version + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := os.Create(filepath.Join(dir, version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	z := zip.NewWriter(out)
	err = filepath.WalkDir(source, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(source, path)
		if err != nil {
			return err
		}
		w, err := z.Create(module + "@" + version + "/" + filepath.ToSlash(rel))
		if err != nil {
			return err
		}
		_, err = w.Write(read(t, path))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
}
