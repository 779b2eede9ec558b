package kernels

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const debian61, debian612, debianARM = "linux-image-cloud-amd64", "linux-image-6.12-cloud-amd64", "linux-image-cloud-arm64"

func TestKernel61(t *testing.T) {
	machine{arch: "amd64", kernel: debian61, jobs: slices.Concat(
		doctors(2, "root", "user"),
		kills,
		[]job{battery("root", kernel61, "TestEscape")},
		withoutNamespaces(confinedBy("threads")),
	)}.run(t)
}

func TestKernel612(t *testing.T) {
	machine{arch: "amd64", kernel: debian612, jobs: slices.Concat(
		doctors(6, "root", "user"),
		kills,
		[]job{
			battery("user", nil, "TestServerKilled", "TestWatcherIsOutOfReach", "TestWatcherLost"),
		},
	)}.run(t)
}

// TestKernelWithoutLandlock boots one that has it, and is told not to use it.
func TestKernelWithoutLandlock(t *testing.T) {
	machine{arch: "amd64", kernel: debian61, append: "lsm=capability,yama", jobs: slices.Concat(
		[]job{refused("landlock", "root", "no Landlock"), refused("landlock", "user", "no Landlock")},
		doctor("auto", "user", confinedBy("namespaces")), doctor("isolate", "root", confinedBy("namespaces")),
		withoutNamespaces(unconfined),
		[]job{refused("strict", "root", "no Landlock"), refused("strict", "user", "no Landlock")},
	)}.run(t)
}

func TestKernelARM64(t *testing.T) {
	machine{arch: "arm64", kernel: debianARM, jobs: slices.Concat(
		doctor("landlock", "user", confinedBy("threads")), doctor("isolate", "user", confinedBy("namespaces")),
		[]job{battery("root", arm61, "TestEscape")},
	)}.run(t)
}

// kills end everything that commands start.
var kills = []job{
	battery("root", nil, "TestKillLeavesNobody", "TestCloseKillsAll", "TestCellKill", "TestIsolatingServerKilled"),
	battery("user", nil, "TestKillLeavesNobody", "TestKillIsExact", "TestPolicyMeansWhatWasFound", "TestNamesAreForgotten"),
	killed("landlock", "user"), killed("isolate", "root"), killed("off", "user"),
}

//go:embed killed.sh
var killedScript string

// killed ends a real server by SIGKILL, and all that a command has started has to end.
func killed(mode, user string) job {
	return job{strings.Join([]string{"server killed", mode, user}, " "), user, "mode=" + mode + "\n" + killedScript, succeeds}
}

// What is skipped, because it fails unconfined too. Kernels of clouds have no module for some sockets; 6.1 has
// neither fchmodat2 nor attributes and flags of files in memory, which have no generation on any.
// Only some architectures have an old number for the options of tracing.
var (
	modules  = escapes("alg", "vsock")
	kernel61 = append(escapes("fchmodat2", "inode-flags", "xattr", "inode-generation"), modules...)
	arm61    = append(escapes("exit-stop-old"), kernel61...)
)

// findings are what doctor --json says, as far as it is looked at.
type findings struct {
	Confined bool
	Why      string
	Remedies []string
	Status   *struct {
		Tier                          string
		LandlockABI                   int
		Seccomp                       bool
		Files, Network, Signals, Kill struct {
			Proven bool
			Detail string
		}
	}
}

func (f findings) proven() bool {
	return f.Status.Seccomp && f.Status.Files.Proven && f.Status.Network.Proven && f.Status.Signals.Proven
}

// doctor asks what a mode enforces here.
func doctor(mode, user string, check func(t *testing.T, f findings)) []job {
	name := strings.Join([]string{"doctor", mode, user}, " ")
	return []job{{name, user, "perstack-base doctor --json --sandbox " + mode, func(t *testing.T, out string, code int) {
		var f findings
		if err := json.Unmarshal([]byte(out), &f); err != nil {
			t.Fatalf("%v: code %d, %s", err, code, out)
		}
		if f.Confined != (code == 0) {
			t.Errorf("exit code %d, confined %v", code, f.Confined)
		}
		check(t, f)
	}}}
}

// doctors ask for every mode. Where the kernel scopes signals each promise is
// proven; where it does not, threads cannot prove that a kill is exact, and say why.
func doctors(abi int, users ...string) (all []job) {
	for _, user := range users {
		for _, mode := range []string{"auto", "strict", "landlock", "isolate"} {
			tier := map[string]string{"landlock": "threads", "isolate": "namespaces"}[mode]
			all = slices.Concat(all, doctor(mode, user, func(t *testing.T, f findings) {
				confinedBy(tier)(t, f)
				if !t.Failed() {
					exact(t, f, abi)
				}
			}), walls(mode, user))
		}
	}
	return all
}

func exact(t *testing.T, f findings, abi int) {
	if f.Status.LandlockABI != abi {
		t.Errorf("landlock ABI %d, want %d", f.Status.LandlockABI, abi)
	}
	want := f.Status.Tier == "namespaces" || abi >= 6
	if kill := f.Status.Kill; kill.Proven != want || !want && !strings.Contains(kill.Detail, "does not scope signals") {
		t.Errorf("kill: %+v", kill)
	}
}

// confinedBy wants all proven but how exact a kill is, by a mechanism ("" for any).
func confinedBy(tier string) func(*testing.T, findings) {
	return func(t *testing.T, f findings) {
		if f.Status == nil || !f.Confined || !f.proven() || tier != "" && f.Status.Tier != tier {
			t.Fatalf("%+v, want all proven by %s", f, tier)
		}
	}
}

func unconfined(t *testing.T, f findings) {
	if f.Confined || f.Why == "" || len(f.Remedies) == 0 {
		t.Errorf("%+v, want that nothing is confined, why, and what to do", f)
	}
}

// secret is what commands must not read; init.sh has laid it there for everybody.
const secret = "/srv/secret"

// walls reads it by a command: unconfined it can be had, confined it cannot.
func walls(mode, user string) []job {
	call := func(mode string) string {
		return fmt.Sprintf(`perstack-base call exec cat args='["%s"]' --sandbox %s`, secret, mode)
	}
	name := strings.Join([]string{"read outside", mode, user}, " ")
	return []job{{name, user, call("off") + " && echo unguarded && " + call(mode), func(t *testing.T, out string, code int) {
		free, caged, ran := strings.Cut(out, "unguarded")
		if !ran || !strings.Contains(free, "secret\\n") && !strings.Contains(free, "secret\n") {
			t.Fatalf("unconfined it fails too, so it proves nothing: %s", out)
		}
		if code == 0 || !strings.Contains(caged, "cat: can't open") {
			t.Errorf("code %d: %s", code, caged)
		}
	}}}
}

// refused runs a command in a mode that is not to be had here: it must not run,
// and the answer must say why and what to do.
func refused(mode, user, why string) job {
	script := fmt.Sprintf("perstack-base call exec touch args='[\"ran\"]' --sandbox %s; code=$?; test -e ran && echo it ran; exit $code", mode)
	return job{strings.Join([]string{"refused", mode, user}, " "), user, script, func(t *testing.T, out string, code int) {
		if code == 0 || strings.Contains(out, "it ran") || !strings.Contains(out, "commands are refused") || !strings.Contains(out, why) {
			t.Errorf("code %d: %s", code, out)
		}
	}}
}

// withoutNamespaces forbids to make namespaces, for the rest of the boot, and asks
// what is left.
func withoutNamespaces(left func(*testing.T, findings)) []job {
	forbid := job{"forbid namespaces", "root", "echo 0 > /proc/sys/user/max_user_namespaces && ! unshare -U true", succeeds}
	then := slices.Concat(doctor("auto", "root", left), doctor("auto", "user", left),
		[]job{refused("isolate", "root", ""), refused("isolate", "user", "")})
	for i := range then {
		then[i].name = "no namespaces " + then[i].name
	}
	return append([]job{forbid}, then...)
}

func succeeds(t *testing.T, out string, code int) {
	if code != 0 {
		t.Errorf("code %d: %s", code, out)
	}
}

// battery runs tests of the confinement. Those that are named must have run and
// passed, and nothing may be skipped that is not known to mean nothing there.
func battery(user string, skippable []string, tests ...string) job {
	pattern := "^(" + strings.Join(tests, "|") + ")$/./^none$" // not also on kernels that are pretended
	script := "for all in " + strings.Join(slices.Sorted(maps.Keys(batteries)), " ") + "; do /$all -test.short -test.v -test.run '" + pattern + "' || exit; done"
	return job{strings.Join(tests, " ") + " " + user, user, script, func(t *testing.T, out string, code int) {
		passed(t, out, code, tests, skippable)
	}}
}

var verdicts = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL|SKIP): (\S+)`)

func passed(t *testing.T, out string, code int, tests, skippable []string) {
	ended := map[string]string{}
	for _, verdict := range verdicts.FindAllStringSubmatch(out, -1) {
		ended[verdict[2]] = verdict[1]
	}
	for _, test := range tests {
		if ended[test] != "PASS" {
			t.Errorf("%s did not pass: %q", test, ended[test])
		}
	}
	for name, verdict := range ended {
		if verdict == "SKIP" && !slices.Contains(skippable, name) {
			t.Errorf("%s was skipped", name)
		}
	}
	if code != 0 || !strings.Contains(out, "\nPASS\n") || t.Failed() {
		t.Errorf("code %d\n%s", code, out)
	}
}

// escapes names probes as the battery does.
func escapes(probes ...string) (names []string) {
	for _, probe := range probes {
		names = append(names, "TestEscape/"+probe)
	}
	return names
}
