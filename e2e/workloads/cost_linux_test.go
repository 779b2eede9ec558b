package workloads

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// costs is the document whose table TestMeasureCost writes, between these markers.
const (
	costs      = "../../docs/performance.md"
	costsBegin = "<!-- costs:begin -->\n"
	costsEnd   = "<!-- costs:end -->"
)

// rounds is how often each is run everywhere, one after the other in each round, so that
// what else the machine does meets all of them.
const rounds = 5

// A job is work that people wait for, in a directory of its own.
type job struct {
	name  string
	setup string // once, outside; it may use the network
	line  string // what is timed, each time from the same state
	fresh bool   // each run in a session of its own
}

var jobs = []job{
	{name: "`go build` of this server, warm, in a new session each time", fresh: true,
		setup: copySelf + " && cd self && go build -o /dev/null ./cmd/perstack-base",
		line:  "cd self && go build -o /dev/null ./cmd/perstack-base"},
	{name: "`go test -count=1` of a package, compiled before", setup: copySelf + " && cd self && go test -count=1 ./tools/internal/patch",
		line: "cd self && go test -count=1 ./tools/internal/patch"},
	{name: "`go vet` after a change, which compiles", setup: copySelf + " && cd self && go vet ./tools/...",
		line: "cd self && echo \"// $(date +%N)\" >> tools/tool.go && go vet ./tools/..."},
	{name: "`npm ci --offline` of jest, eslint and typescript", setup: "echo '{}' > package.json && npm install --no-audit --no-fund --silent jest@29 eslint@9 typescript@5",
		line: "rm -rf node_modules && npm ci --offline --no-audit --no-fund --silent"},
	{name: "git in 5,000 files: add, commit, status, checkout", setup: "git init -q r && cd r && for d in $(seq 50); do mkdir d$d; for f in $(seq 100); do echo $d $f > d$d/f$f; done; done && git add . && git commit -qm first",
		line: "cd r && date +%N > new && git add . && git commit -qm next && git status --porcelain && git rm -rq d1 && git reset -q --hard && git log --stat -1 > /dev/null"},
	{name: "`make -j2` of 40 C files", setup: "for i in $(seq 40); do printf '#include <stdio.h>\\n#include <stdlib.h>\\n#include <string.h>\\nint f%d(int n) { return printf(\"%%d\", n); }\\n' $i > f$i.c; done && printf 'all: $(patsubst %%.c,%%.o,$(wildcard *.c))\\n' > Makefile",
		line: "rm -f *.o && make -s -j2 CFLAGS=-O1"},
	{name: "20 files of Python tests, a process each", setup: "for i in $(seq 20); do printf 'import json, subprocess, tempfile, unittest\\nclass A(unittest.TestCase):\\n    def test_a(self):\\n        with tempfile.TemporaryFile() as f: f.write(json.dumps([1]).encode())\\n' > test_$i.py; done",
		line: "for t in test_*.py; do python3 -m unittest -q $t 2> /dev/null; done"},
	{name: "500 processes, one after another", setup: "true", line: "i=0; while [ $i -lt 500 ]; do /bin/true; i=$((i+1)); done"},
	{name: "`grep -r` and `cp -r` in 5,000 files", setup: "mkdir a && for d in $(seq 50); do mkdir a/$d; for f in $(seq 100); do echo needle$f > a/$d/$f; done; done",
		line: "grep -rl needle77 a > /dev/null && rm -rf b && cp -r a b"},
}

const copySelf = "mkdir self && (cd \"$SELF\" && tar c --exclude=.git .) | tar x -C self"

// TestMeasureCost measures what confinement costs, and writes the table of
// docs/performance.md. It proves nothing, so it runs only when it is asked to.
func TestMeasureCost(t *testing.T) {
	if os.Getenv("PERSTACK_BASE_MEASURE") == "" {
		t.Skip("writes the table of docs/performance.md; set PERSTACK_BASE_MEASURE=1, or to words of some jobs: make,git")
	}
	var table strings.Builder
	fmt.Fprintf(&table, "%d CPUs, %s/%s, %d runs of each. Each figure is the median of the runs' own ratios to the run without confinement beside it.\n\n"+
		"| work | plain | `landlock` | `isolate` |\n|---|---|---|---|\n", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, rounds)
	s := newSite(t, persons(t)[0], "off")
	asked := strings.Split(os.Getenv("PERSTACK_BASE_MEASURE"), ",")
	for i, j := range jobs {
		if asked[0] != "1" && !slices.ContainsFunc(asked, func(word string) bool { return strings.Contains(j.name, word) }) {
			continue
		}
		plain, ratios := s.measure(t, j, i)
		fmt.Fprintf(&table, "| %s | %.2f s | %.2f | %.2f |\n", j.name, plain.Seconds(), ratios["landlock"], ratios["isolate"])
		t.Log(j.name, plain, ratios)
	}
	document, err := os.ReadFile(costs)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(document), costsBegin)
	_, tail, found := strings.Cut(rest, costsEnd)
	if !ok || !found {
		t.Fatalf("%s has lost its markers", costs)
	}
	if err := os.WriteFile(costs, []byte(head+costsBegin+table.String()+costsEnd+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}

// measure runs one job in turn without a server and in both mechanisms.
func (s *site) measure(t *testing.T, j job, n int) (plain time.Duration, ratios map[string]float64) {
	t.Helper()
	dir := filepath.Join(s.workspace(), fmt.Sprintf("job%d", n))
	s.mkdir(t, dir)
	self, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	s.outsideIn(t, dir, j.setup, "SELF="+self)
	servers := map[string]*server{}
	for _, mechanism := range mechanisms {
		servers[mechanism] = s.confinedIn(t, dir, mechanism)
		if a := servers[mechanism].run(t, j.line, ""); a.Code != "" { // which warms what there is
			t.Fatalf("%s, %s: %v", j.name, mechanism, a)
		}
	}
	s.outsideIn(t, dir, j.line)
	var times []time.Duration
	all := map[string][]float64{}
	for range rounds {
		took := timed(func() { s.outsideIn(t, dir, j.line) })
		times = append(times, took)
		for _, mechanism := range mechanisms {
			srv := servers[mechanism]
			if j.fresh {
				srv = s.confinedIn(t, dir, mechanism)
			}
			confined := timed(func() { srv.run(t, j.line, "") })
			all[mechanism] = append(all[mechanism], confined.Seconds()/took.Seconds())
			if j.fresh {
				srv.Close()
			}
		}
	}
	ratios = map[string]float64{}
	for mechanism, list := range all {
		slices.Sort(list)
		ratios[mechanism] = list[len(list)/2]
	}
	slices.Sort(times)
	return times[len(times)/2], ratios
}

func timed(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

// confinedIn starts a server of a mechanism for a directory.
func (s *site) confinedIn(t *testing.T, dir, mechanism string) *server {
	twin := *s
	twin.mechanism = mechanism
	srv := twin.start(t, dir, nil)
	return &srv
}

// outsideIn runs a line without a server.
func (s *site) outsideIn(t *testing.T, dir, line string, env ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if out, err := s.command(ctx, dir, s.environment(append(certificates(), env...)), "sh", "-ec", line).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
}
