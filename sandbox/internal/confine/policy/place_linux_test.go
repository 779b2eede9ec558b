package policy

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A machine is a HOME and a workspace, made of files and links (with ->).
type machine struct{ dir, home, ws string }

func newMachine(t *testing.T, entries ...string) machine {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := machine{dir, filepath.Join(dir, "home"), filepath.Join(dir, "home/ws")}
	for _, entry := range append(entries, "home/ws/f", "home/.ssh/id_rsa") {
		m.make(t, entry)
	}
	return m
}

func (m machine) make(t *testing.T, entry string) {
	t.Helper()
	name, target, isLink := strings.Cut(entry, " -> ")
	path := filepath.Join(m.dir, name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	switch {
	case err != nil:
	case isLink:
		err = os.Symlink(strings.ReplaceAll(target, "DIR", m.dir), path)
	case strings.HasSuffix(name, "/"):
		err = os.MkdirAll(path, 0o755)
	default:
		err = os.WriteFile(path, nil, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (m machine) paths(list string) []string {
	var out []string
	for _, name := range strings.Fields(list) {
		out = append(out, filepath.Join(m.dir, name))
	}
	return out
}

// policy is the default one of the machine, looked up.
func (m machine) policy(t *testing.T, bins, read, write string) Policy {
	t.Helper()
	p := DefaultPolicy(Inputs{Workspace: m.ws, Home: m.home, Path: strings.Join(m.paths(bins), ":"), AllowRead: m.paths(read), AllowWrite: m.paths(write)}).Pin()
	t.Cleanup(p.Close)
	return p
}

func (m machine) check(t *testing.T, p Policy, yes, no string) {
	t.Helper()
	for _, path := range m.paths(yes) {
		if !p.Allows(path, false) {
			t.Errorf("%s cannot be read", path)
		}
	}
	for _, path := range m.paths(no) {
		if p.Allows(path, false) {
			t.Errorf("%s can be read", path)
		}
	}
}

func TestSystemPolicy(t *testing.T) {
	p := DefaultPolicy(Inputs{Workspace: t.TempDir(), Path: "/usr/bin:relative::/:/etc"}).Pin()
	defer p.Close()
	for path, want := range map[string]bool{
		"/usr/bin/env": true, "/etc/hosts": true, "/proc/self/status": true, "/dev/null": true, "/dev/shm/x": true,
		"/etc/shadow": false, "/etc/passwd": false, "/etc": false, "/": false, "/root": false, "/var/run/docker.sock": false, "/dev/sda": false, "/etc/ssh/ssh_host_rsa_key": false,
	} {
		if got := p.Allows(path, false); got != want {
			t.Errorf("read %s: %v", path, got)
		}
	}
	for _, path := range append(p.Read, p.Write...) {
		if !filepath.IsAbs(path) || path != filepath.Clean(path) {
			t.Errorf("%q is not absolute and clean", path)
		}
	}
	with := DefaultPolicy(Inputs{Workspace: t.TempDir(), Users: true}).Pin()
	defer with.Close()
	if !with.Allows("/etc/passwd", false) || with.Allows("/etc/shadow", false) {
		t.Error("the names of users are to be read, and nothing else")
	}
}

// TestToolchainsOnPath: what programs need can be read, what lies beside them cannot.
func TestToolchainsOnPath(t *testing.T) {
	m := newMachine(t, "home/.pyenv/shims/python", "home/.pyenv/versions/3/bin/python", "home/.pyenv/.git/config", "home/.pyenv/secret",
		"home/.cargo/bin/cargo", "home/.cargo/credentials.toml", "home/.cargo/config.toml", "home/.cargo/registry/x", "home/.rustup/toolchains/x", "home/.rustup/settings.toml",
		"home/.nvm/versions/node/v20/bin/node", "home/.nvm/versions/node/v20/lib/x", "home/.nvm/.npmrc",
		"home/.local/bin/tool -> ../share/uv/tools/tool/bin/tool", "home/.local/share/uv/tools/tool/bin/tool", "home/.local/share/uv/tools/tool/lib/x", "home/.local/share/uv/credentials/x",
		"home/.local/bin/mine -> DIR/home/src/mine", "home/src/mine", "home/src/.env", "home/.local/share/keyrings/login.keyring",
		"home/.local/bin/key -> DIR/home/.ssh/id_rsa",
		"home/venv/bin/python -> /usr/bin/env", "home/venv/pyvenv.cfg", "home/venv/lib/x", "home/venv/.env",
		"home/node/bin/npm -> ../lib/node_modules/npm/cli.js", "home/node/lib/node_modules/npm/package.json", "home/node/lib/node_modules/npm/cli.js", "home/node/etc/npmrc",
		"home/scripts/run", "home/scripts/.env", "home/scripts/sub/secret",
		"home/go/bin/gopls", "home/go/pkg/mod/x", "home/go/src/secret",
		"home/.dotnet/dotnet", "home/.dotnet/sdk/x", "home/.dotnet/corefx/cryptography/x509stores/my/key.pfx")
	p := m.policy(t, "home/.pyenv/shims home/.cargo/bin home/.nvm/versions/node/v20/bin home/.local/bin home/venv/bin home/node/bin home/scripts home/go/bin home/.dotnet home", "", "")
	m.check(t, p, "home/.pyenv/shims/python home/.pyenv/versions/3/bin/python home/.cargo/bin/cargo home/.cargo/registry/x home/.rustup/toolchains/x home/.rustup/settings.toml "+
		"home/.nvm/versions/node/v20/bin/node home/.nvm/versions/node/v20/lib/x home/.local/bin/tool home/.local/share/uv/tools/tool/lib/x home/src/mine "+
		"home/venv/bin/python home/venv/lib/x home/venv/pyvenv.cfg home/node/lib/node_modules/npm/cli.js home/scripts/run home/go/bin/gopls home/go/pkg/mod/x home/.dotnet/dotnet home/.dotnet/sdk/x",
		"home home/.pyenv/.git/config home/.pyenv/secret home/.cargo/credentials.toml home/.cargo/config.toml home/.nvm/.npmrc home/.local/share/uv/credentials/x "+
			"home/src/.env home/.local/share/keyrings/login.keyring home/.ssh/id_rsa home/venv/.env home/node/etc/npmrc home/scripts/.env home/scripts/sub/secret home/go/src/secret "+
			"home/.dotnet/corefx/cryptography/x509stores/my/key.pfx")
}

// TestSecretsBesidePrograms: nothing of what is kept beside a bin can be read,
// and what holds secrets by its name never, unless the user asked for it.
func TestSecretsBesidePrograms(t *testing.T) {
	var entries, bins, secret []string
	for tool, file := range map[string]string{
		".fly": "config.yml", ".pulumi": "credentials.json", ".foundry": "keystores/main", ".docker": "config.json", ".aws": "credentials", ".kube": "config",
		".config/composer/vendor": "auth.json", ".gnupg": "secring.gpg", ".bun": ".npmrc", ".deno": "auth.json", ".volta": ".env", ".linkerd2": "key.pem", ".krew": "token",
		".sdkman": "etc/config", ".composer/vendor": "../auth.json", "work/tool": ".env", ".wasmtime": "key", ".cargo": "credentials", ".local": "share/keyrings/x",
	} {
		entries = append(entries, "home/"+tool+"/bin/program", "home/"+tool+"/"+file)
		bins = append(bins, "home/"+tool+"/bin")
		secret = append(secret, "home/"+tool+"/"+file)
	}
	for _, rc := range []string{".bashrc", ".bash_profile", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".netrc", ".npmrc", ".pypirc", ".env"} {
		entries, secret = append(entries, "home/"+rc), append(secret, "home/"+rc)
	}
	m := newMachine(t, append(entries, "home/.config/git/config", "home/.config/git/credentials", "home/.gitconfig")...)
	p := m.policy(t, strings.Join(bins, " "), "", "")
	m.check(t, p, "home/.fly/bin/program home/work/tool/bin/program", strings.Join(secret, " ")+" home/.config/git/credentials home/.gitconfig home/.config/git/config")
	asked := m.policy(t, "", "home/.aws", "")
	m.check(t, asked, "home/.aws/credentials", "home/.kube/config")
}

// TestNothingThroughWhatCommandsWrite: no name that commands can replace decides
// what they may reach.
func TestNothingThroughWhatCommandsWrite(t *testing.T) {
	m := newMachine(t, "home/ws/.venv/bin -> DIR/home/.ssh", "home/ws/node_modules/.bin -> DIR/home/.ssh", "home/ws/tools -> DIR/home/.ssh",
		"home/ws/data -> DIR/home/.ssh", "opt/bin -> DIR/home/ws/tools", "home/.npm/_cacache -> DIR/home/.ssh", "home/other -> DIR/home/ws/data",
		"data/real/x", "data/link -> real", "home/out/w -> DIR/home/.ssh")
	p := m.policy(t, "home/ws/.venv/bin home/ws/node_modules/.bin home/ws/tools opt/bin home/ws/later", "home/ws/data home/other data/link", "home/.npm home/out home/out/w")
	m.check(t, p, "data/real/x home/ws/f", "home/.ssh home/.ssh/id_rsa")
	if p.Allows(filepath.Join(m.home, ".ssh/id_rsa"), true) {
		t.Error("keys can be written")
	}
	var dropped []string
	for _, place := range p.Dropped {
		dropped = append(dropped, place.Path)
	}
	for _, path := range m.paths("home/ws/data home/other opt/bin home/out/w") {
		if !slices.Contains(dropped, path) {
			t.Errorf("%s is left out, and that is not told", path)
		}
	}
	// The unguarded lookup would have followed.
	if real, err := filepath.EvalSymlinks(filepath.Join(m.ws, "data/id_rsa")); err != nil || !strings.HasSuffix(real, ".ssh/id_rsa") {
		t.Fatal(real, err)
	}
}

// TestNoLinkOutOfAnInstallation: what looks like one, as a directory of PATH that
// commands of another server could write does, grants what is in it and no more.
func TestNoLinkOutOfAnInstallation(t *testing.T) {
	m := newMachine(t, "home/private/f", "home/keys/f",
		"home/p/.venv/pyvenv.cfg", "home/p/.venv/bin/python -> /usr/bin/env", "home/p/.venv/lib/x", "home/p/.venv/lib64 -> lib",
		"home/p/.venv/share -> DIR/home/private", "home/p/.venv/include -> ../../keys", "home/p/tool/bin -> DIR/home/private",
		"home/p/go -> DIR/home", "home/bin/x", "home/pkg/mod/f")
	if err := os.Chmod(filepath.Join(m.home, "private/f"), 0o600); err != nil { // no program
		t.Fatal(err)
	}
	p := m.policy(t, "home/p/.venv/bin home/p/tool/bin home/p/go/bin", "", "")
	m.check(t, p, "home/p/.venv/bin home/p/.venv/lib/x home/p/.venv/pyvenv.cfg", "home/private/f home/keys/f home/private home/pkg/mod/f")
	// It is nothing that must not be read: who names it gets it, by a link too.
	m.check(t, m.policy(t, "home/p/.venv/bin", "home/p/.venv/share", ""), "home/private", "home/keys")
}

// TestPolicyMeansWhatWasFound: what happens to names later changes nothing, but
// what the system replaces is found again.
func TestPolicyMeansWhatWasFound(t *testing.T) {
	m := newMachine(t, "out/ws/f", "data/x", "tool/bin/x")
	m.ws = filepath.Join(m.dir, "out/ws")
	p := m.policy(t, "tool/bin", "data", "out")
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Rename(m.ws, m.ws+"-old"))
	must(os.Symlink(m.home, m.ws))
	must(os.RemoveAll(filepath.Join(m.dir, "data")))
	must(os.Mkdir(filepath.Join(m.dir, "data"), 0o755))
	must(os.Rename(filepath.Join(m.dir, "tool/bin"), filepath.Join(m.dir, "tool/moved")))
	must(os.Symlink(filepath.Join(m.home, ".ssh"), filepath.Join(m.dir, "tool/bin")))
	later, release := p.With(nil, nil, "")
	defer release()
	ids := map[FileID]Place{}
	for _, place := range later.Places {
		if !place.Covered {
			ids[place.ID] = place
		}
	}
	for name, want := range map[string]bool{"home": false, "home/.ssh": false, "data": true, "tool/moved": true, "out": true} {
		place, err := walk(filepath.Join(m.dir, name), nil, nil)
		must(err)
		if got, ok := ids[place.ID]; ok != want || ok && cmp.Or(got.From, got.Real) != place.Real {
			t.Errorf("%s: granted %v, from %q", name, ok, got.From)
		}
		place.Fd.close()
	}
}

func TestHomeBelowTheSystem(t *testing.T) {
	m := newMachine(t, "home/.bashrc", "beside/x")
	old := System
	defer func() { System = old }()
	System = []Group{{"system", []string{m.dir}}}
	m.check(t, m.policy(t, "", "", ""), "beside/x home/ws/f", "home/.bashrc home/.ssh/id_rsa")
}

func TestRootWorkspace(t *testing.T) {
	p := DefaultPolicy(Inputs{Workspace: "/"}).Pin()
	defer p.Close()
	if !p.Allows("/etc/shadow", true) || !p.Allows("/", true) {
		t.Error("a workspace of / does not hold everything")
	}
}

func TestReach(t *testing.T) {
	m := newMachine(t, "home/.bashrc", "home/.zshrc -> dot/zshrc", "home/dot/zshrc", "home/.bad -> DIR/home/ws/f", "home/dir/")
	p := m.policy(t, "", "", "")
	for name, want := range map[string]bool{"home/.bashrc": true, "home/.zshrc": true, "home/.bad": false, "home/dir": false, "home/none": false, "home/ws/f": false} {
		file, err := p.Reach(filepath.Join(m.dir, name))
		if file != nil {
			file.Close()
		}
		if (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
