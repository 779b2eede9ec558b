package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// The images that commands run in. None is pulled: they are made of what this
// machine has.
const (
	busyboxImage = "perstack-base-e2e:busybox" // a shell and small tools, no bash, no python
	fullImage    = "perstack-base-e2e:full"    // bash, GNU tools and python, as Debian's images have them
	emptyImage   = "perstack-base-e2e:empty"   // no program at all
)

// imageEnv is what the images say of their environment.
const imageEnv = "ENV FROM_IMAGE=said-by-the-image"

var imageFiles = map[string]func() ([]entry, error){
	busyboxImage: sync.OnceValues(func() ([]entry, error) {
		busybox, err := staticBusybox()
		if err != nil {
			return nil, err
		}
		all, err := rootfs(busybox)
		return append(all, entry{"app/", 0o755, nil, ""}, entry{"app/banner", 0o644, []byte("of the image\n"), ""}), err
	}),
	fullImage: sync.OnceValues(fullRoot),
	emptyImage: func() ([]entry, error) {
		return []entry{{"nothing/", 0o755, nil, ""}}, nil
	},
}

// have makes an image, once.
func (e *engine) have(image string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err, made := e.images[image]; made && err == nil {
		return nil
	}
	files, err := imageFiles[image]()
	if err == nil {
		err = load(e, image, files, imageEnv, "ENV PATH=/usr/local/bin:/usr/bin:/bin")
	}
	e.images[image] = err
	return err
}

func (e *engine) need(t *testing.T, image string) {
	t.Helper()
	if _, ok := imageFiles[image]; !ok {
		return
	}
	if err := e.have(image); errors.Is(err, errNoDocker) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
}

// fullPrograms are in the full image as far as this machine has them.
var fullPrograms = strings.Fields(`bash sh env [ awk basename cat chmod chown comm cp cut date dd df diff dirname du expr false find
	git grep head id install kill ln ls md5sum mkdir mkfifo mktemp mv nl nproc od paste printf ps pwd readlink realpath rm rmdir sed seq
	setsid sha256sum sleep sort split stat stty sync tail tar tee test timeout touch tr true tty uname uniq wc which whoami xargs yes python3`)

// fullRoot is the file system of a Linux with the programs of this machine and the
// libraries that they load.
func fullRoot() ([]entry, error) {
	all := []entry{{"usr/", 0o755, nil, ""}, {"usr/bin/", 0o755, nil, ""}, {"bin", 0o777, nil, "usr/bin"}, {"etc/", 0o755, nil, ""}, {"tmp/", 0o1777, nil, ""},
		{"etc/passwd", 0o644, []byte("root:x:0:0:root:/root:/bin/bash\n"), ""}}
	seen := map[string]bool{}
	add := func(from, to string) error {
		if seen[to] {
			return nil
		}
		seen[to] = true
		data, err := os.ReadFile(from)
		all = append(all, entry{strings.TrimPrefix(to, "/"), 0o755, data, ""})
		return err
	}
	for _, name := range fullPrograms {
		from := filepath.Join("/usr/bin", name)
		if _, err := os.Stat(from); err != nil {
			from = filepath.Join("/bin", name)
		}
		if _, err := os.Stat(from); err != nil {
			if name == "bash" {
				return nil, fmt.Errorf("no bash for the full image: %w", err)
			}
			continue
		}
		if err := add(from, "/usr/bin/"+name); err != nil {
			return nil, err
		}
		for _, lib := range libraries(from) {
			if err := add(lib, lib); err != nil {
				return nil, err
			}
		}
	}
	modules, err := pythonModules()
	return append(all, modules...), err
}

// libraries are the files that a program is loaded with, the loader among them.
func libraries(program string) (paths []string) {
	out, _ := exec.Command("ldd", program).Output() // fails for one without any
	for line := range strings.Lines(string(out)) {
		if _, after, found := strings.Cut(line, "=>"); found {
			line = after
		}
		if fields := strings.Fields(line); len(fields) > 0 && strings.HasPrefix(fields[0], "/") {
			paths = append(paths, fields[0])
		}
	}
	return paths
}

// pythonModules are the standard library of this machine's python, none without one.
func pythonModules() (all []entry, err error) {
	out, err := exec.Command("/usr/bin/python3", "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))").Output()
	root := strings.TrimSpace(string(out))
	if err != nil || root == "" {
		return nil, nil
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && (name == "test" || name == "dist-packages" || name == "site-packages" || strings.HasPrefix(name, "config-")) {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(path)
		all = append(all, entry{strings.TrimPrefix(path, "/"), 0o644, data, ""})
		return err
	})
	return all, err
}

// maxFiles is how many files this process may have open.
func maxFiles() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 1024
	}
	return limit.Max
}
