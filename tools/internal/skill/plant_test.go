package skill

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
)

// TestPlantedPrograms: the login shell reads profile files that commands may not
// read, so no program and no library of a command's has a part in that.
func TestPlantedPrograms(t *testing.T) {
	home, path := t.TempDir(), os.Getenv("PATH")
	t.Setenv("HOME", home)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	// The server starts with a virtual environment of its workspace.
	t.Setenv("PATH", strings.Join([]string{dir + "/.venv/bin", "bin", home + "/bin", path}, ":"))
	t.Setenv("BASH_ENV", dir+"/planted-env")
	spy := "#!/bin/sh\ncat " + home + "/.bashrc >>" + dir + "/stolen\n"
	r := newRigIn(t, dir, map[string]string{
		"skills/s/SKILL.md": plainSkill, "planted-env": spy, "bin/called": spy, "bin/bash": spy,
		".venv/bin/bash": spy + `exec /bin/bash "$@"`, ".venv/bin/env": spy + `exec /usr/bin/env "$@"`, ".venv/bin/called": spy,
	})
	confined(t, r)
	profile := "export MY_PASSWORD=hunter2 FROM_PROFILE=yes; called\n"
	err = errors.Join(os.WriteFile(home+"/.bashrc", []byte(profile), 0o600), os.WriteFile(home+"/.bash_profile", []byte(". ~/.bashrc\n"), 0o600),
		os.Mkdir(home+"/bin", 0o755), os.Symlink(dir+"/.venv/bin/bash", home+"/bin/bash"))
	if err != nil {
		t.Fatal(err)
	}
	env := r.loginEnv(t.Context())
	if stolen, err := os.ReadFile(dir + "/stolen"); err == nil && strings.Contains(string(stolen), "hunter2") {
		t.Errorf("a planted program read the profile: %s", stolen)
	}
	if lookupEnv(env, "FROM_PROFILE") != "yes" || lookupEnv(env, "BASH_ENV") != dir+"/planted-env" {
		t.Errorf("the login shell did not answer: %q", env)
	}
	for _, entry := range []string{dir + "/.venv/bin", "bin", home + "/bin"} {
		if n := strings.Count(":"+lookupEnv(env, "PATH")+":", ":"+entry+":"); n != 1 {
			t.Errorf("%s is %d times in PATH %s", entry, n, lookupEnv(env, "PATH"))
		}
	}
	if strings.Contains(strings.Join(env, "\n"), "/dev/null/") {
		t.Errorf("a stand-in is left: %q", env)
	}
}

// TestManyWarnings: however much a command leaves behind that cannot be reported,
// and by what names, the warnings are few and short.
func TestManyWarnings(t *testing.T) {
	testlevel.NotQuick(t, "makes thousands of links")
	const links = 3000
	r := newRig(t, map[string]string{"skills/s/SKILL.md": plainSkill})
	long := strings.Repeat("n", 240)
	r.mustRun(t, Run{Command: "true"})
	for i := range links {
		if err := os.Symlink("nowhere", filepath.Join(r.work.abs("out"), fmt.Sprintf("%s%d", long, i))); err != nil {
			t.Fatal(err)
		}
	}
	out := r.mustRun(t, Run{Command: "true", OutputFiles: []string{"out/*", "out/**"}, Outputs: &Outputs{Globs: []string{"out/*"}, MaxFiles: 10, MaxFileBytes: 100, MaxTotalBytes: 100}})
	if len(out.Warnings) != maxWarnings+1 || out.Warnings[maxWarnings] != fmt.Sprintf("and %d more", links-maxWarnings) {
		t.Errorf("%d warnings, the last: %q", len(out.Warnings), out.Warnings[len(out.Warnings)-1])
	}
	if n := len(strings.Join(out.Warnings, "")); n > (maxWarnings+1)*2*maxWarnedName {
		t.Errorf("%d bytes of warnings", n)
	}
}
