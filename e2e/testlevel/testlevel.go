// Package testlevel says how much of the tests is to run. There are three levels:
//
//	go test -short ./...                    what tells in half a minute whether something broke
//	go test ./...                           every promise, in some minutes
//	PERSTACK_BASE_ALL=1 go test ./...       also the batteries: each attack on each mechanism, containers,
//	                                        releases, workloads; .ci/run does this
//
// A test that -run names is run whole on the second level, too, and on the first as far as
// testing.Short permits.
package testlevel

import (
	"flag"
	"os"
	"testing"
)

// allVar asks for everything.
const allVar = "PERSTACK_BASE_ALL"

// All reports whether the batteries are to run. Flags must have been parsed.
func All() bool { return !testing.Short() && (named() || os.Getenv(allVar) != "") }

// Quick reports whether only what is quick is to run.
func Quick() bool { return testing.Short() && !named() && os.Getenv(allVar) == "" }

// only is what Only asked for.
var only string

// named reports whether -run names tests.
func named() bool { return flag.Lookup("test.run").Value.String() != only }

// Leave has the tests that pattern describes left out, unless -run names tests. It is
// for TestMain, behind flag.Parse.
func Leave(pattern string) {
	if named() {
		return
	}
	if own := flag.Lookup("test.skip").Value.String(); own != "" {
		pattern = own + "|" + pattern
	}
	set("test.skip", pattern)
}

// Only has no other tests run than those that pattern describes, unless -run names tests.
// It is for TestMain, behind flag.Parse.
func Only(pattern string) {
	if !named() {
		set("test.run", pattern)
		only = pattern
	}
}

// SideBySide lets more parallel tests run at once than there are processors, unless
// -parallel says how many: for packages whose parallel tests wait more than they compute.
// It is for TestMain, behind flag.Parse.
func SideBySide() {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		set("test.parallel", "8")
	}
}

// NotQuick skips a test where only what is quick is to run.
func NotQuick(t testing.TB, why string) {
	t.Helper()
	if Quick() {
		t.Skip("-short: " + why)
	}
}

// Battery skips a test unless the batteries are to run.
func Battery(t testing.TB, why string) {
	t.Helper()
	if !All() {
		t.Skip(why + "; " + allVar + "=1, or -run, has it run")
	}
}

func set(name, value string) {
	if err := flag.Set(name, value); err != nil {
		panic(err)
	}
}
