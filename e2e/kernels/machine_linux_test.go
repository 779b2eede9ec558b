package kernels

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A machine is one boot of one kernel.
type machine struct {
	arch   string
	kernel string // the package that depends on the newest of this kind
	append string // to the command line of the kernel
	jobs   []job
}

// A job is a script that a user runs in a machine. Jobs follow each other, so one
// may change the machine for the next.
type job struct {
	name   string
	user   string // root or user
	script string
	check  func(t *testing.T, out string, code int)
}

// jobTime bounds a job, and machineTime a boot with all its jobs; both are for
// what hangs, on a machine that is busy besides.
const (
	jobTime     = 6 * time.Minute
	machineTime = 15 * time.Minute
)

// An emulator is how QEMU plays a machine of an architecture.
type emulator struct {
	program, debian string // and the package that has it
	cpu, console    string
	args            []string
}

var emulators = map[string]emulator{
	"amd64": {"qemu-system-x86_64", "qemu-system-x86", "max", "ttyS0", nil},
	"arm64": {"qemu-system-aarch64", "qemu-system-arm", "max,pauth-impdef=on", "ttyAMA0", []string{"-M", "virt"}},
}

//go:embed init.sh
var initScript []byte

// bootVar makes the machines boot: go test ./... is to stay quick. What is not 1
// selects the jobs by their names.
const bootVar = "PERSTACK_BASE_KERNELS"

func (m machine) run(t *testing.T) {
	wanted := os.Getenv(bootVar)
	if wanted == "" {
		t.Skipf("boots a kernel, for a minute or two: set %s=1", bootVar)
	}
	t.Parallel()
	m.jobs = slices.DeleteFunc(m.jobs, func(j job) bool { return wanted != "1" && !regexp.MustCompile(wanted).MatchString(j.name) })
	e := emulators[m.arch]
	if _, err := exec.LookPath(e.program); err != nil {
		t.Skipf("%s is missing (apt-get install %s)", e.program, e.debian)
	}
	from := newAPT(t, m.arch)
	kernel := from.file(t, from.dependency(t, m.kernel), "boot/vmlinuz-*")
	busybox := from.file(t, "busybox-static", "bin/busybox")
	initrd := filepath.Join(t.TempDir(), "initrd")
	if err := os.WriteFile(initrd, m.files(t, busybox), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), machineTime)
	defer cancel()
	args := append([]string{"-accel", "tcg,thread=multi", "-cpu", e.cpu, "-smp", "2", "-m", "2048", "-nographic", "-no-reboot", "-net", "none",
		"-kernel", kernel, "-initrd", initrd, "-append", "console=" + e.console + " quiet loglevel=1 panic=-1 mitigations=off " + m.append}, e.args...)
	begun := time.Now()
	log, err := exec.CommandContext(ctx, e.program, args...).CombinedOutput()
	if ctx.Err() != nil {
		err = fmt.Errorf("ended after %v: it hung", machineTime)
	}
	if err != nil {
		t.Errorf("%s: %v", e.program, err)
	}
	text := strings.ReplaceAll(string(log), "\r\n", "\n")
	t.Logf("%s: %.0fs", filepath.Base(kernel), time.Since(begun).Seconds())
	for _, j := range m.jobs {
		t.Run(j.name, func(t *testing.T) { j.judge(t, text) })
	}
	if t.Failed() {
		t.Logf("all that the machine said:\n%s", text)
	}
}

// judge looks at what a job has printed. One that did not run, or did not end, has
// failed.
func (j job) judge(t *testing.T, log string) {
	_, after, begun := strings.Cut(log, "@@ begin "+j.name+"\n")
	end := regexp.MustCompile(`(?m)^@@ end ` + regexp.QuoteMeta(j.name) + ` (\d+) `).FindStringSubmatchIndex(after)
	if !begun || end == nil {
		t.Fatal("it did not run to its end")
	}
	code, _ := strconv.Atoi(after[end[2]:end[3]]) // digits
	j.check(t, after[:end[0]], code)
}

// files is the initial file system: busybox, our programs, the jobs.
func (m machine) files(t *testing.T, busybox string) []byte {
	t.Helper()
	archive := newCPIO()
	archive.dir("bin", "etc", "usr", "usr/bin", "usr/lib", "jobs")
	archive.add("init", 0o755, initScript)
	archive.add("bin/sh", 0o755, read(t, busybox))
	archive.add("bin/busybox", 0o755, read(t, busybox))
	archive.add("etc/passwd", 0o644, []byte("root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\n"))
	archive.add("etc/group", 0o644, []byte("root:x:0:\nuser:x:1000:\n"))
	for name, file := range build(t, m.arch) {
		archive.add(name, 0o755, read(t, file))
	}
	for i, j := range m.jobs {
		dir := fmt.Sprintf("jobs/%03d", i)
		archive.dir(dir)
		archive.add(dir+"/script", 0o644, []byte(j.script+"\n"))
		archive.add(dir+"/settings", 0o644, fmt.Appendf(nil, "name='%s' user=%s seconds=%.0f\n", j.name, j.user, jobTime.Seconds()))
	}
	return archive.end()
}

// batteries are test binaries by the names they have in the machine, and their
// packages.
var batteries = map[string]string{
	"usr/lib/confine.test":   "../../sandbox/internal/confine",
	"usr/lib/broker.test":    "../../sandbox/internal/confine/broker",
	"usr/lib/datagrams.test": "../../sandbox/internal/confine/broker/datagrams",
	"usr/lib/listeners.test": "../../sandbox/internal/confine/broker/listeners",
	"usr/lib/policy.test":    "../../sandbox/internal/confine/policy",
}

// programs are what was built for an architecture: where they go in a machine, and
// where they are.
type programs map[string]string

var built = struct {
	sync.Mutex
	dir    string
	byArch map[string]programs
}{byArch: map[string]programs{}}

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(built.dir)
	os.Exit(code)
}

// build makes the programs, once for each architecture.
func build(t *testing.T, arch string) programs {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if built.byArch[arch] != nil {
		return built.byArch[arch]
	}
	if built.dir == "" {
		var err error
		if built.dir, err = os.MkdirTemp("", "kernels-"); err != nil {
			t.Fatal(err)
		}
	}
	made := programs{}
	place := func(name string) string {
		made[name] = filepath.Join(built.dir, arch+"-"+filepath.Base(name))
		return made[name]
	}
	compile(t, arch, "build", "-trimpath", "-ldflags", "-s -w", "-o", place("usr/bin/perstack-base"), "../../cmd/perstack-base")
	for name, source := range batteries {
		compile(t, arch, "test", "-c", "-ldflags", "-s -w", "-o", place(name), source)
	}
	built.byArch[arch] = made
	return made
}

func compile(t *testing.T, arch string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// A cpio is an archive of the kind that kernels unpack at boot. All in it is
// root's, whoever makes it.
type cpio struct {
	bytes.Buffer
	inode int
}

func newCPIO() *cpio { return new(cpio) }

func (c *cpio) dir(names ...string) {
	for _, name := range names {
		c.entry(name, 0o040755, nil)
	}
}

func (c *cpio) add(name string, mode int, content []byte) { c.entry(name, 0o100000|mode, content) }

func (c *cpio) entry(name string, mode int, content []byte) {
	c.inode++
	c.WriteString("070701")
	for _, field := range []int{c.inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0} {
		fmt.Fprintf(c, "%08X", field)
	}
	c.WriteString(name + "\x00")
	c.align()
	c.Write(content)
	c.align()
}

func (c *cpio) align() {
	for c.Len()%4 != 0 {
		c.WriteByte(0)
	}
}

func (c *cpio) end() []byte {
	c.entry("TRAILER!!!", 0, nil)
	return c.Bytes()
}
