package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// tiers are the mechanisms that commands run in, with none among them.
var tiers = []string{"isolate", "landlock", "off"}

// hold is a shell function that keeps some megabytes in memory for LONG. That is a
// moment where nothing ends it, and where a limit does, longer than it can take.
const hold = "hold() { head -c ${1}M /dev/zero | tail -c ${1}M | sleep LONG; }; "

// For LONG in a line.
const (
	moment = "1"
	ages   = "300"
)

// An excess is a command that needs more than a limit permits.
type excess struct {
	name string
	flag []string
	line string
	said string // when it is limited
	free string // what it prints when it is not
	tier string // "" for each
}

var excesses = []excess{
	{"memory of one", []string{"--max-memory", "64M"}, "head -c 200M /dev/zero | tail -c 200M | wc -c", "--max-memory 64M", "209715200", ""},
	{"memory together", []string{"--max-memory", "64M"}, hold + "for i in 1 2 3 4; do hold 40 & done; sleep LONG; echo free", "ended because the session's commands used more than --max-memory 64M", "free", ""},
	{"files in memory", []string{"--max-memory", "64M"}, "head -c 50M /dev/zero > /dev/shm/a; head -c 50M /dev/zero > /tmp/b; sleep LONG; echo free",
		"ended because the session's commands used more than --max-memory 64M", "free", "isolate"},
	{"processes", []string{"--max-processes", "20"}, "for i in $(seq 40); do sleep LONG & done; wait; [ $i = 40 ] && echo free", "--max-processes 20 reached", "free", ""},
}

// within are commands that need less, and are let be.
var within = []excess{
	{"memory", []string{"--max-memory", "256M"}, "head -c 30M /dev/zero | tail -c 30M | wc -c", "", "31457280", ""},
	{"processes", []string{"--max-processes", "20"}, "for i in $(seq 15); do sleep LONG & done; wait; echo free", "", "free", ""},
}

// shared50 has 50 MB in a file in memory, and shows them to two processes: they count once.
var shared50 = excess{"shared memory counts once", []string{"--max-memory", "64M"},
	`python3 -c 'import mmap,os,time
f=open("/dev/shm/x","w+b"); f.truncate(50<<20); m=mmap.mmap(f.fileno(),50<<20); os.fork()
for i in range(0,50<<20,4096): m[i]=1
time.sleep(1.5)' && echo free`, "", "free", "isolate"}

// TestLimits: what the commands of a session use together is bounded, in every
// mechanism and for every user; the same without the flag shows that it is the limit.
func TestLimits(t *testing.T) {
	for _, g := range guests(t) {
		for _, tier := range tiers {
			t.Run(g.name+", "+tier, func(t *testing.T) {
				t.Parallel()
				needTier(t, g, tier)
				all := append(append([]excess{}, excesses...), within...)
				if _, err := exec.LookPath("python3"); err == nil {
					all = append(all, shared50)
				}
				for _, e := range all {
					if e.tier != "" && e.tier != tier {
						continue
					}
					t.Run(e.name, func(t *testing.T) { e.try(t, g, tier) })
				}
			})
		}
	}
}

// needTier skips what this machine does not have for a user.
func needTier(t *testing.T, g guest, tier string) {
	t.Helper()
	if got := ask(t, g, []string{"--sandbox", tier}, "echo here"); !strings.Contains(got, "here") {
		t.Skip(got)
	}
}

func (e excess) try(t *testing.T, g guest, tier string) {
	long := ages
	if e.said == "" {
		long = moment
	}
	flags := append([]string{"--sandbox", tier}, e.flag...)
	if got := ask(t, g, flags, strings.ReplaceAll(e.line, "LONG", long)); !strings.Contains(got, e.said) || (e.said == "") != strings.Contains(got, e.free) {
		t.Errorf("with %v: %s", e.flag, got)
	}
	if e.said == "" { // it is enough that nothing ends it
		return
	}
	if got := ask(t, g, flags[:2], strings.ReplaceAll(e.line, "LONG", moment)); !strings.Contains(got, e.free) || strings.Contains(got, "--max-") {
		t.Errorf("without: %s", got)
	}
}

// ask has a server of a guest's run one line, and ends it.
func ask(t *testing.T, g guest, flags []string, line string) string {
	t.Helper()
	c := startCommand(t, guestCommand(g, append([]string{"serve"}, flags...)...))
	c.initialize()
	defer func() { c.in.Close(); c.end() }()
	return answer(t, c, line)
}

func answer(t *testing.T, c *client, line string) string {
	t.Helper()
	result, err := c.call("exec", run(line))
	if err != nil {
		t.Fatal(err)
	}
	return text(t, result)
}

// TestLimitOfSession: what an earlier command has left running counts, too.
func TestLimitOfSession(t *testing.T) {
	for _, g := range guests(t) {
		for _, tier := range tiers {
			t.Run(g.name+", "+tier, func(t *testing.T) {
				t.Parallel()
				needTier(t, g, tier)
				c := startCommand(t, guestCommand(g, "serve", "--sandbox", tier, "--max-memory", "64M"))
				c.initialize()
				hold := strings.ReplaceAll(hold, "LONG", ages)
				one := hold + "hold 50 & sleep " + ages + "; echo lives"
				if got := answer(t, c, hold+"(hold 50 > /dev/null 2>&1 &) ; sleep 1; echo lives"); !strings.Contains(got, "lives") {
					t.Fatalf("one alone is too much: %s", got)
				}
				if got := answer(t, c, one); strings.Contains(got, "lives") || !strings.Contains(got, "--max-memory 64M") {
					t.Errorf("beside what was left running: %s", got)
				}
				if got := answer(t, c, "echo next"); !strings.Contains(got, "next") {
					t.Errorf("the session is over: %s", got)
				}
			})
		}
	}
}

// TestBombBelowLimit: a command that makes processes until the control group of the
// server has room for no more does not end the server.
func TestBombBelowLimit(t *testing.T) {
	for _, g := range guests(t) {
		for _, tier := range tiers[:2] {
			t.Run(g.name+", "+tier, func(t *testing.T) {
				t.Parallel()
				needTier(t, g, tier)
				c := crowded(t, 300, guestCommand(g, "serve", "--sandbox", tier))
				if got := answer(t, c, "for i in $(seq 400); do sleep 30 & done; :"); !strings.Contains(got, "ork") {
					t.Fatalf("there was room for all of them: %s", got)
				}
				for range 3 {
					if _, err := c.call("exec", bomb); err != nil {
						t.Fatal(err)
					}
					if got := answer(t, c, "echo next"); got == "" {
						t.Error("no answer")
					}
				}
				c.in.Close()
				if code := c.end(); code != 0 {
					t.Errorf("the server ended with %d: %s", code, c.stderr.String())
				}
			})
		}
	}
}

// forks makes processes without end.
const forks = "b() { b & b & wait; }; b"

// bomb does so until its deadline.
var bomb = run(forks, "timeout=20000")

// TestBombIsEnded: by --max-processes, and the session goes on.
func TestBombIsEnded(t *testing.T) {
	for _, g := range guests(t) {
		for _, tier := range tiers {
			t.Run(g.name+", "+tier, func(t *testing.T) {
				t.Parallel()
				needTier(t, g, tier)
				c := crowded(t, 1500, guestCommand(g, "serve", "--sandbox", tier, "--max-processes", "20"))
				// It ends by the limit, and on a busy machine that takes longer than a short deadline.
				result, err := c.call("exec", run(forks, "timeout=120000"))
				if err != nil {
					t.Fatal(err)
				}
				if got := text(t, result); !strings.Contains(got, "--max-processes 20 reached") {
					t.Errorf("%.600s", got)
				}
				for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
					got := answer(t, c, "for i in 1 2 3 4 5; do sleep 0.1 & done; wait; echo next")
					if strings.Contains(got, `"output":"next\n"}`) {
						break
					}
					if time.Since(begun) > hangGuard {
						t.Fatalf("it goes on: %.600s", got)
					}
				}
			})
		}
	}
}

// crowded starts a server in a control group that has few processes.
func crowded(t *testing.T, few int, cmd *exec.Cmd) *client {
	t.Helper()
	enterGroup(cmd, smallGroup(t, few))
	c := startCommand(t, cmd)
	c.initialize()
	return c
}

// enterGroup has a command begin in a control group.
func enterGroup(cmd *exec.Cmd, enter string) {
	cmd.Args = append([]string{"sh", "-c", `echo 0 > "$0" && exec "$@"`, enter}, cmd.Args...)
	cmd.Path = "/bin/sh"
}

// smallGroup is the file by which processes enter a control group that has few.
func smallGroup(t *testing.T, few int) string {
	t.Helper()
	return groupWith(t, map[string]string{"/sys/fs/cgroup/pids": "pids.max", "/sys/fs/cgroup": "pids.max"}, strconv.Itoa(few))
}

// groupWith makes a control group with a limit, whose file is named for the place of the
// group, of either version, and returns the file by which processes enter.
func groupWith(t *testing.T, files map[string]string, limit string) string {
	t.Helper()
	for top, file := range files {
		if _, err := os.Stat(top + "/cgroup.procs"); err != nil { // of the other version
			continue
		}
		dir := filepath.Join(top, fmt.Sprintf("perstack-test-%d", time.Now().UnixNano()))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		if os.WriteFile(filepath.Join(dir, file), []byte(limit), 0) != nil {
			os.Remove(dir)
			continue
		}
		t.Cleanup(func() {
			for begun := time.Now(); !errors.Is(os.Remove(dir), os.ErrNotExist); time.Sleep(10 * time.Millisecond) {
				if time.Since(begun) > hangGuard {
					left, _ := os.ReadFile(dir + "/cgroup.procs")
					t.Errorf("processes are left: %s", left)
					return
				}
			}
		})
		return dir + "/cgroup.procs"
	}
	t.Skip("no control group can be made that has the limit")
	return ""
}

// TestCommandsGoFirst: when memory runs out the system ends commands rather than the
// server, in every mechanism; commands that are confined cannot change that.
func TestCommandsGoFirst(t *testing.T) {
	for _, g := range guests(t) {
		for _, tier := range tiers {
			t.Run(g.name+", "+tier, func(t *testing.T) {
				t.Parallel()
				needTier(t, g, tier)
				line := "cat /proc/self/oom_score_adj; (echo 0 > /proc/self/oom_score_adj) 2> /dev/null; exec cat /proc/self/oom_score_adj"
				if tier == "off" { // nothing keeps an unconfined command from it
					line = "cat /proc/self/oom_score_adj; setsid cat /proc/self/oom_score_adj"
				}
				if got := ask(t, g, []string{"--sandbox", tier}, line); !strings.Contains(got, `1000\n1000\n`) {
					t.Error(got)
				}
			})
		}
	}
}

// kept is what doctor says of a limit.
type kept struct {
	Flag, Value, Keeping, By string
	Asked                    bool
}

func keptBy(t *testing.T, args ...string) map[string]kept {
	t.Helper()
	out, stderr, _ := cli(t, workspace(t), nil, append([]string{"doctor", "--json"}, args...)...)
	var found struct{ Limits []kept }
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatalf("%v: %s %s", err, out, stderr)
	}
	all := map[string]kept{}
	for _, k := range found.Limits {
		all[k.Flag] = k
	}
	return all
}

// TestStrictKeepsLimits: doctor tells what keeps a limit, and strict starts with those
// that are kept exactly and with no others.
func TestStrictKeepsLimits(t *testing.T) {
	confined(t)
	asked := []string{"--max-memory", "512M", "--max-processes", "64", "--max-cpus", "1.5"}
	limits := keptBy(t, append([]string{"--sandbox", "strict"}, asked...)...)
	for i := 0; i < len(asked); i += 2 {
		flag, value := asked[i], asked[i+1]
		k := limits[flag]
		if !k.Asked || k.Value != value || k.By == "" {
			t.Errorf("doctor says %+v of %s", k, flag)
		}
		cmd := exec.Command(binary, "serve", "--sandbox", "strict", flag, value)
		cmd.Dir = workspace(t)
		out, err := cmd.CombinedOutput() // its input is at the end
		if exact := k.Keeping == "exactly"; exact != (err == nil) || !exact && !strings.Contains(string(out), flag+" "+value+" is kept "+k.Keeping+" here") {
			t.Errorf("%s, kept %s: %v %s", flag, k.Keeping, err, out)
		} else if !exact && cmd.ProcessState.ExitCode() != 2 {
			t.Errorf("exit code %d", cmd.ProcessState.ExitCode())
		}
	}
	if k := keptBy(t)["--max-memory"]; k.Asked || k.Value != "" {
		t.Errorf("nobody asked: %+v", k)
	}
}

// TestLimitFlags: what cannot be meant is refused with the form that is wanted, also
// from the environment.
func TestLimitFlags(t *testing.T) {
	for _, c := range []struct{ flag, value, said string }{
		{"--max-memory", "0", "as in 512M or 2G"}, {"--max-memory", "-5M", "as in 512M or 2G"}, {"--max-memory", "lots", "as in 512M or 2G"},
		{"--max-memory", "512MB", "as in 512M or 2G"}, {"--max-memory", "4K", "at least 1M"}, {"--max-memory", "99999999T", "as in 512M or 2G"},
		{"--max-processes", "0", "as in 64"}, {"--max-processes", "-1", "as in 64"}, {"--max-processes", "1.5", "as in 64"},
		{"--max-cpus", "0", "as in 0.5 or 2"}, {"--max-cpus", "-1", "as in 0.5 or 2"}, {"--max-cpus", "NaN", "as in 0.5 or 2"},
	} {
		_, stderr, code := cli(t, workspace(t), nil, "serve", c.flag+"="+c.value)
		if code != 2 || !strings.Contains(stderr, c.flag) || !strings.Contains(stderr, c.said) {
			t.Errorf("%s %s: code %d: %s", c.flag, c.value, code, stderr)
		}
	}
	_, stderr, code := cli(t, workspace(t), []string{"PERSTACK_BASE_MAX_MEMORY=much"}, "serve")
	if code != 2 || !strings.Contains(stderr, "PERSTACK_BASE_MAX_MEMORY") || !strings.Contains(stderr, "as in 512M or 2G") {
		t.Errorf("code %d: %s", code, stderr)
	}
	if stdout, stderr, code := cli(t, workspace(t), []string{"PERSTACK_BASE_MAX_MEMORY=1g"}, "serve"); code != 0 {
		t.Errorf("1g: code %d: %s %s", code, stdout, stderr)
	}
}
