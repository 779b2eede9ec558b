package environ

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/internal/network"
)

func TestFilterEnv(t *testing.T) {
	for _, tt := range []struct {
		entry string
		pass  []string
		kept  bool
	}{
		{"PATH=/bin", nil, true},
		{"API_KEY=x", nil, false},
		{"monkey=x", nil, true},
		{"KEYBOARD=x", nil, true},
		{"apiKey=x", nil, false},
		{"APIKey=x", nil, false},
		{"APIKEY=x", nil, false},
		{"GitHub_Token=x", nil, false},
		{"githubToken=x", nil, false},
		{"TOKENIZERS_PARALLELISM=x", nil, true},
		{"MY_SECRET_=x", nil, false},
		{"PGPASSWORD=x", nil, false},
		{"SSHPASS=x", nil, false},
		{"DB_PASS=x", nil, false},
		{"COMPASS=x", nil, true},
		{"GPG_PASSPHRASE=x", nil, false},
		{"MYSQL_PWD=x", nil, false},
		{"PWD=x", nil, true},
		{"OLDPWD=x", nil, true},
		{"GH_PAT=x", nil, false},
		{"PATTERN=x", nil, true},
		{"API_KEY2=x", nil, false},
		{"DEPLOY_KEYS=x", nil, false},
		{"SESSION_COOKIE=x", nil, false},
		{"GOOGLE_APPLICATION_CREDENTIALS=x", nil, false},
		{"SSH_AUTH_SOCK=x", nil, false},
		{"GIT_AUTHOR_NAME=x", nil, true},
		{"GIT_COMMITTER_EMAIL=x", nil, true},
		{"AUTHOR=x", nil, true},
		{"NPM_CONFIG__AUTH=x", nil, false},
		{"npm_config_//registry.example.org/:_authToken=x", nil, false},
		{"AWS_SESSION_NAME=x", nil, false},
		{"AWS_REGION=x", nil, true},
		{"AWS_DEFAULT_REGION=x", nil, true},
		{"AWS_PROFILE=x", nil, true},
		{"AWS_CA_BUNDLE=x", nil, true},
		{"NOT_AWS_REGION=x", nil, true},
		{"PERSTACK_BASE_X=x", nil, false},
		{"PERSTACK_X=x", nil, true},
		{"DATABASE_URL=postgres://user:word@host/db", nil, false},
		{"DATABASE_URL=postgres://user@host/db", nil, true},
		{"A_URL=http://host:80/x@y", nil, true},
		{"API_KEY=x", []string{"API_KEY"}, true},
		{"API_KEY=x", []string{"API_*"}, true},
		{"API_KEY=x", []string{"KEY"}, false},
		{"DATABASE_URL=postgres://user:word@host/db", []string{"DATABASE_*"}, true},
		{"AWS_SESSION_NAME=x", []string{"SSH_*", "AWS_*"}, true},
		{"EMPTY=", nil, true},
	} {
		if kept := len(Filter([]string{tt.entry}, tt.pass)) == 1; kept != tt.kept {
			t.Errorf("%s with %v: kept %v", tt.entry, tt.pass, kept)
		}
		if named := len(WithheldNames([]string{tt.entry}, tt.pass)) == 1; named == tt.kept {
			t.Errorf("%s with %v: listed as withheld %v", tt.entry, tt.pass, named)
		}
	}
}

func TestHostEnv(t *testing.T) {
	home := t.TempDir()
	env := ForCommands(Host{Env: []string{"HOME=" + home, "USER=ann", "https_proxy=x"}}, true)
	want := []string{"HOME=" + home, "USER=ann", "LOGNAME=ann", "SHELL=/bin/sh"}
	if want = append(want, noNetwork...); !slices.Equal(env, want) {
		t.Errorf("got %q, want %q", env, want)
	}
	env = ForCommands(Host{Env: []string{"HOME=/none", "NPM_CONFIG_AUDIT=true", "PIP_RETRIES=3"}}, true)
	if got := strings.Join(env, " "); strings.Contains(got, "npm_config_audit") || strings.Contains(got, "PIP_RETRIES=0") || !strings.Contains(got, "CARGO_NET_RETRY=0") {
		t.Errorf("what the host sets must stay: %s", got)
	}
	if env := ForCommands(Host{Network: network.Everything}, true); slices.Contains(env, "PIP_RETRIES=0") {
		t.Error("there is a network")
	}
	named, err := network.ParseAccess("registry.example")
	if err != nil {
		t.Fatal(err)
	}
	env = ForCommands(Host{Env: []string{"PIP_RETRIES=3"}, Network: named}, true)
	if got := strings.Join(env, " "); !strings.Contains(got, "npm_config_fetch_retry_mintimeout=200") || strings.Contains(got, "PIP_RETRIES=2") {
		t.Errorf("with a network by name: %s", got)
	}
	if env := ForCommands(Host{Env: []string{"USER=a", "LOGNAME=b", "SHELL=c", "HOME=d", "https_proxy=x"}}, false); len(env) != 5 {
		t.Errorf("got %q", env)
	}
}

func TestMergeEnv(t *testing.T) {
	base := []string{"A=1", "B=2"}
	got := Merge(base, map[string]string{"B": "x", "D": "4", "C": "3"})
	if want := []string{"A=1", "B=x", "C=3", "D=4"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if base[1] != "B=2" {
		t.Error("the base was changed")
	}
}

func TestLookup(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"bin/tool": 0o755, "bin/data": 0o644, "here": 0o755, "late/data": 0o755} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	at := func(p string) string { return filepath.Join(dir, p) }
	for _, tt := range []struct {
		name, path, want string
		err              error
	}{
		{"tool", at("bin"), at("bin/tool"), nil},
		{"tool", "bin", at("bin/tool"), nil},
		{"tool", "/nowhere:bin", at("bin/tool"), nil},
		{"here", "", at("here"), nil},
		{"here", "/nowhere:", at("here"), nil},
		{"here", "bin", "", ErrNoProgram},
		{"data", "bin:late", at("late/data"), nil},
		{"data", "bin", "", ErrNotExecutable},
		{"bin", ".", "", ErrNotExecutable},
		{"./here", "", at("here"), nil},
		{"bin/tool", "", at("bin/tool"), nil},
		{at("here"), "", at("here"), nil},
		{"./gone", "", "", ErrNoProgram},
		{"here/x", "", "", ErrNoProgram},
		{"./bin", "", "", ErrNotExecutable},
		{"bin/data", "", "", ErrNotExecutable},
	} {
		got, err := Lookup(tt.name, dir, tt.path)
		if !errors.Is(err, tt.err) || tt.err == nil && got != tt.want {
			t.Errorf("%s in %q: got %q %v, want %q %v", tt.name, tt.path, got, err, tt.want, tt.err)
		}
	}
}

func TestToolHomes(t *testing.T) {
	home := t.TempDir()
	for _, dir := range []string{".cargo", "go/pkg/mod", ".rustup"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	base := []string{"HOME=" + home, "RUSTUP_HOME=/mine"}
	want := append(slices.Clone(base), "GOMODCACHE="+home+"/go/pkg/mod")
	if got := addToolHomes(slices.Clone(base), false); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := addToolHomes(slices.Clone(base), true); !slices.Equal(got, base) {
		t.Errorf("with a network the private caches serve: %q", got)
	}
	if got := addToolHomes([]string{"A=1"}, false); len(got) != 1 {
		t.Errorf("without HOME: %q", got)
	}
}
