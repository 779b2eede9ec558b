package e2e

import (
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestPackagesByName: package managers get what they want from the machine's own
// registries by name, with nothing else permitted; without the name they are told.
func TestPackagesByName(t *testing.T) {
	t.Parallel()
	for _, p := range []struct {
		program, registry, line, made string
	}{
		{"npm", registryOfNPM(), "npm install --no-audit --no-fund is-number@7.0.0", "node_modules/is-number/package.json"},
		{"go", "https://proxy.golang.org", "go mod init example.com/m && GOFLAGS=-mod=mod GONOSUMDB='*' GOTOOLCHAIN=local GOPROXY=https://proxy.golang.org go get golang.org/x/time@v0.5.0", "go.sum"},
	} {
		if _, err := exec.LookPath(p.program); err != nil {
			t.Logf("%s: not tried: %v", p.program, err)
			continue
		}
		rules, host, err := rulesFor(p.registry)
		if err != nil {
			t.Logf("%s: not tried: %v", p.program, err)
			continue
		}
		for _, g := range guests(t) {
			for _, tier := range []string{"landlock", "isolate"} {
				t.Run(p.program+", "+g.name+", "+tier, func(t *testing.T) {
					fetch(t, g, tier, rules, host, p.line, p.made)
				})
			}
		}
	}
}

// registryOfNPM is where npm gets packages, "" when it does not say.
func registryOfNPM() string {
	cmd := exec.Command("npm", "config", "get", "registry")
	cmd.Env = append(os.Environ(), "HOME="+userHome)
	out, _ := cmd.Output()
	return strings.TrimSpace(string(out))
}

// rulesFor permit a registry, by its addresses as well where these are special.
func rulesFor(registry string) (rules, host string, err error) {
	at, err := url.Parse(registry)
	if err != nil {
		return "", "", err
	}
	port := at.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[at.Scheme]
	}
	addrs, err := net.LookupHost(at.Hostname())
	if err != nil {
		return "", "", err
	}
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(at.Hostname(), port), hangGuard)
	if err != nil {
		return "", "", err
	}
	conn.Close()
	rules = at.Hostname() + ":" + port
	for _, text := range addrs {
		if addr, err := netip.ParseAddr(text); err == nil && (!addr.IsGlobalUnicast() || addr.IsPrivate()) {
			rules += "," + net.JoinHostPort(text, port)
		}
	}
	return rules, at.Hostname(), nil
}

// fetch has a guest's command fetch something, first without the rule.
func fetch(t *testing.T, g guest, tier, rules, host, line, made string) {
	g.dir = emptied(t, g)
	if text, err := os.ReadFile(filepath.Join(userHome, ".npmrc")); err == nil {
		if err := os.WriteFile(filepath.Join(g.home, ".npmrc"), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, permitted := range []string{"other.example", rules} {
		c := startCommand(t, guestCommand(g, "serve", "--sandbox", tier, "--network", permitted))
		c.initialize()
		result, err := c.call("exec", run(line+" 2>&1 | tail -5"))
		if err != nil {
			t.Fatal(err)
		}
		got := text(t, result)
		_, missing := os.Stat(filepath.Join(g.dir, made))
		switch {
		case strings.Contains(got, "cannot be confined") || strings.Contains(got, "commands are refused"):
			t.Skip(got)
		case permitted == rules && (missing != nil || strings.Contains(got, "blocked by the sandbox: network")):
			t.Errorf("%s: %v, %s", line, missing, got)
		case permitted != rules && (missing == nil || !strings.Contains(got, "blocked by the sandbox: network to "+host)):
			t.Errorf("%s, which nothing permits: %s", line, got)
		}
		c.in.Close()
		c.end()
		g.dir = emptied(t, g)
	}
}

// emptied is a new workspace of the guest's.
func emptied(t *testing.T, g guest) string {
	t.Helper()
	dir, err := os.MkdirTemp(filepath.Dir(g.dir), "packages-")
	if err == nil && g.uid != os.Getuid() {
		err = os.Chown(dir, g.uid, g.uid)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// guestCommand is a program that a guest runs on this machine.
func guestCommand(g guest, args ...string) *exec.Cmd {
	cmd := exec.Command(binary, args...)
	if id := strconv.Itoa(g.uid); g.uid != os.Getuid() {
		cmd = exec.Command("setpriv", append([]string{"--reuid", id, "--regid", id, "--clear-groups", binary}, args...)...)
	}
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "HOME="+g.home, "XDG_CACHE_HOME="+g.home+"/cache", "GOCACHE=", "GOMODCACHE=", "GOPATH=")
	return cmd
}
