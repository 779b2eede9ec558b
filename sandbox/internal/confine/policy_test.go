package confine

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func testInputs() Inputs {
	return Inputs{
		Workspace: "/home/u/ws", Home: "/home/u",
		Path: strings.Join([]string{"/home/u/.pyenv/shims", "/home/u/.nvm/versions/node/v20/bin", "/home/u/.cargo/bin",
			"/home/u/.local/bin", "/home/u/bin", "/usr/bin", "/usr/local/go/bin", "/home/linuxbrew/.linuxbrew/bin",
			"relative/bin", "", ".", "/", "/home/u", "/bin"}, ":"),
		Private:   []string{"/run/user/1/home", "/run/user/1/tmp"},
		AllowRead: []string{"/data", "not/absolute"}, AllowWrite: []string{"/cache/"},
	}
}

func TestDefaultPolicy(t *testing.T) {
	p := DefaultPolicy(testInputs())
	for _, tt := range []struct {
		path        string
		read, write bool
	}{
		{"/home/u/ws", true, true},
		{"/home/u/ws/a/b", true, true},
		{"/home/u/ws2", false, false},
		{"/home/u", false, false},
		{"/home/u/.ssh/id_rsa", false, false},
		{"/home/u/.aws/credentials", false, false},
		{"/home/u/.gitconfig", true, false},
		{"/home/u/.config/git/config", true, false},
		{"/home/u/.config/git/credentials", false, false},
		{"/home/u/.config/gh/hosts.yml", false, false},
		{"/home/u/.npmrc", false, false},
		{"/home/u/.bashrc", true, false},
		{"/home/u/.pyenv/versions/3.12/bin/python", true, false},
		{"/home/u/.nvm/versions/node/v20/lib/node_modules/npm", true, false},
		{"/home/u/.cargo/bin/cargo", true, false},
		{"/home/u/.cargo/credentials.toml", false, false},
		{"/home/u/.rustup/toolchains/x", true, false},
		{"/home/u/.local/bin/x", true, false},
		{"/home/u/.local/lib/python3.12", true, false},
		{"/home/u/.local/share/keyrings/login.keyring", false, false},
		{"/home/u/bin/x", true, false},
		{"/home/linuxbrew/.linuxbrew/lib/x", true, false},
		{"/home/linuxbrew", false, false},
		{"/home/other", false, false},
		{"/", false, false},
		{"/usr/bin/env", true, false},
		{"/usr/local/go/src", true, false},
		{"/etc/hosts", true, false},
		{"/etc/ssl/certs/ca.pem", true, false},
		{"/etc/ssl/private/key.pem", false, false},
		{"/etc/passwd", false, false},
		{"/etc/shadow", false, false},
		{"/etc/ssh/ssh_host_rsa_key", false, false},
		{"/etc", false, false},
		{"/proc/self/status", true, false},
		{"/sys/devices/system/cpu/online", true, false},
		{"/sys/class", false, false},
		{"/dev/null", true, true},
		{"/dev/sda", false, false},
		{"/dev/shm/x", true, true},
		{"/run/user/1/tmp/x", true, true},
		{"/var/run/docker.sock", false, false},
		{"/data/x", true, false},
		{"/cache/x", true, true},
		{"/home/u/ws/../.ssh", false, false},
	} {
		if got := p.Allows(tt.path, false); got != tt.read {
			t.Errorf("read %s: %v", tt.path, got)
		}
		if got := p.Allows(tt.path, true); got != tt.write {
			t.Errorf("write %s: %v", tt.path, got)
		}
	}
	for _, path := range append(p.Read, p.Write...) {
		if !filepath.IsAbs(path) || path != filepath.Clean(path) {
			t.Errorf("%q is not absolute and clean", path)
		}
	}
}

func TestPolicyWithoutHome(t *testing.T) {
	in := testInputs()
	for _, home := range []string{"", "/"} {
		in.Home = home
		if p := DefaultPolicy(in); p.Allows("/.gitconfig", false) {
			t.Errorf("HOME %q: a file of the root is open", home)
		}
	}
}

func TestPolicyFollowsLinks(t *testing.T) {
	in := Inputs{Workspace: "/ws", Path: "/opt/tool/link", Resolve: func(p string) (string, error) {
		switch p {
		case "/ws":
			return "/real/ws", nil
		case "/opt/tool/link":
			return "/store/abc/bin", nil
		}
		return "", errors.New("not there")
	}}
	p := DefaultPolicy(in)
	for _, path := range []string{"/ws/a", "/real/ws/a"} {
		if !p.Allows(path, true) {
			t.Errorf("%s is not writable", path)
		}
	}
	for _, path := range []string{"/store/abc/bin/x", "/store/abc/lib/y"} {
		if !p.Allows(path, false) || p.Allows(path, true) {
			t.Errorf("%s is not read-only", path)
		}
	}
}

func TestPolicyRootWorkspace(t *testing.T) {
	if p := DefaultPolicy(Inputs{Workspace: "/"}); !p.Allows("/etc/passwd", true) || !p.Allows("/", true) {
		t.Error("a workspace of / does not hold everything")
	}
}

func TestPolicyIsSortedAndUnique(t *testing.T) {
	p := DefaultPolicy(testInputs())
	for _, list := range [][]string{p.Read, p.Write} {
		if !slices.IsSorted(list) || len(slices.Compact(slices.Clone(list))) != len(list) {
			t.Errorf("%q", list)
		}
	}
}

func FuzzBelow(f *testing.F) {
	f.Add("/a/b", "/a")
	f.Add("/ab", "/a")
	f.Add("/", "/")
	f.Fuzz(func(t *testing.T, path, root string) {
		path, root = filepath.Clean("/"+path), filepath.Clean("/"+root)
		rel, err := filepath.Rel(root, path)
		want := err == nil && filepath.IsLocal(rel)
		if got := below(path, []string{root}); got != want {
			t.Errorf("below(%q, %q) = %v", path, root, got)
		}
	})
}
