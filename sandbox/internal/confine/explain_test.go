package confine

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestExplain(t *testing.T) {
	there := map[string]string{
		"/etc/passwd": "/etc/passwd", "/ws/out": "/home/u/secret file", "/usr/bin/env": "/usr/bin/env",
		"/root": "/root", "/usr": "/usr", "/ws/mine": "/ws/mine", "/home/u/a b": "/home/u/a b",
	}
	x := Explainer{
		Policy: Policy{Read: []string{"/usr"}, Write: []string{"/ws"}, Devices: []string{"/dev/null"}},
		Dir:    "/ws",
		Resolve: func(p string) (string, error) {
			if r, ok := there[p]; ok {
				return r, nil
			}
			return "", errors.New("not there")
		},
	}
	passwd := "blocked by the sandbox: read /etc/passwd (outside the workspace; start the server with --allow-read /etc/passwd to permit it)"
	for _, tt := range []struct {
		stderr string
		want   []string
	}{
		{"cat: /etc/passwd: Permission denied\n", []string{passwd}},
		{"cat: can't open '/etc/passwd': Permission denied\n", []string{passwd}}, // busybox
		{"PermissionError: [Errno 13] Permission denied: '/etc/passwd'", []string{passwd}},
		{"PermissionError: [Errno 13] Permission denied: b'/etc/passwd'", []string{passwd}},
		{"Error: EACCES: permission denied, open '/etc/passwd'", []string{passwd}},
		{"2026/01/01 open /etc/passwd: permission denied", []string{passwd}},
		{"cat: /etc/passwd: Permission denied\ncat: /etc/passwd: Permission denied\n", []string{passwd}},
		{"ls: cannot open directory '/root': Permission denied", []string{
			"blocked by the sandbox: read /root (outside the workspace; start the server with --allow-read /root to permit it)"}},
		{"touch: cannot touch '/usr/x': Permission denied", []string{
			"blocked by the sandbox: write /usr/x (outside the workspace; start the server with --allow-write /usr to permit it)"}},
		{"sh: 1: cannot create /usr/bin/env: Permission denied", []string{
			"blocked by the sandbox: write /usr/bin/env (outside the workspace; start the server with --allow-write /usr/bin/env to permit it)"}},
		{"cat: out: Permission denied", []string{
			"blocked by the sandbox: read /ws/out (outside the workspace; start the server with --allow-read /home/u/secret file to permit it)"}},
		{"cat: '/home/u/a b': Permission denied", []string{
			"blocked by the sandbox: read /home/u/a b (outside the workspace; start the server with --allow-read /home/u/a b to permit it)"}},
		{"go: Get https://example.org/root/x: permission denied", nil}, // the rest of a URL is no path
		{"cat: /ws/mine: Permission denied", nil},
		{"cat: mine: Permission denied", nil},
		{"cat: nothing: Permission denied", nil},
		{"cat: /etc/passwd: No such file or directory", nil},
		{"", nil},
	} {
		got := x.Explain(tt.stderr, nil)
		if len(got) == 0 && len(tt.want) == 0 {
			continue
		}
		if !slices.Equal(got, tt.want) && !(len(tt.want) == 1 && slices.Contains(got, tt.want[0])) {
			t.Errorf("%q:\n got %q\nwant %q", tt.stderr, got, tt.want)
		}
	}
}

func TestExplainRefusals(t *testing.T) {
	var l ledger
	l.add(Refusal{Command: "curl", What: "connect to 10.0.0.1:443", Permit: permitNetworkFlag})
	for range 2 {
		l.add(Refusal{Command: "mount", What: "mount or administer the system"})
	}
	got := Explainer{}.Explain("", l.list())
	want := []string{
		"blocked by the sandbox: mount or administer the system",
		"blocked by the sandbox: connect to 10.0.0.1:443 (the network is closed; start the server with --network allow to permit it)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestExplainIsBounded(t *testing.T) {
	var l ledger
	for i := range 10 * maxRefusals {
		l.add(Refusal{What: strings.Repeat("x", i)})
	}
	if n := len(l.list()); n != maxRefusals {
		t.Errorf("%d refusals kept, want %d", n, maxRefusals)
	}
	if n := len(Explainer{}.Explain("", l.list())); n != maxExplained {
		t.Errorf("%d sentences, want %d", n, maxExplained)
	}
}

func FuzzNamedPaths(f *testing.F) {
	for _, s := range []string{"cat: /etc/passwd: Permission denied", "'a", "‘/x’: permission denied", "\xff/\x00"} {
		f.Add(s)
	}
	x := Explainer{Dir: "/ws", Resolve: func(p string) (string, error) { return p, nil }}
	f.Fuzz(func(t *testing.T, line string) {
		for _, s := range x.Explain(line+": permission denied", nil) {
			if !strings.HasPrefix(s, "blocked by the sandbox: ") {
				t.Errorf("%q", s)
			}
		}
	})
}

// TestExplainHidden: where commands see nothing of what they may not reach.
func TestExplainHidden(t *testing.T) {
	x := Explainer{Hidden: true, Dir: "/ws", Policy: Policy{Read: []string{"/usr"}, Write: []string{"/ws"}},
		Resolve: func(p string) (string, error) {
			switch p {
			case "/etc/passwd", "/usr", "/usr/bin/env", "/ws/mine":
				return p, nil
			case "/ws/link":
				return "/etc/passwd", nil
			}
			return "", errors.New("not there")
		}}
	for stderr, want := range map[string]string{
		"cat: /etc/passwd: No such file or directory":             "read /etc/passwd (outside",
		"sh: 1: cannot open /etc/passwd: No such file":            "",
		"cat: link: No such file or directory":                    "read /ws/link (outside",
		"cat: /no/such: No such file or directory":                "",
		"cat: such: No such file or directory":                    "",
		"cat: /usr/bin/env: No such file or directory":            "",
		"touch: cannot touch '/usr/x': Read-only file system":     "write /usr/x (outside",
		"rm: cannot remove '/usr/bin/env': Read-only file system": "write /usr/bin/env (outside",
		"curl: (6) Could not resolve host: example.org":           "reach the network (the network is closed; start the server with --network allow",
		"connect: Network is unreachable":                         "reach the network",
		"cat: /etc/passwd: Permission denied":                     "read /etc/passwd (outside",
	} {
		got := strings.Join(x.Explain(stderr, nil), "\n")
		if want == "" && got != "" || !strings.Contains(got, want) || strings.Contains(got, "\n") {
			t.Errorf("%q: %q", stderr, got)
		}
	}
	x.Hidden = false
	if got := x.Explain("cat: /etc/passwd: No such file or directory", nil); got != nil {
		t.Errorf("nothing was hidden: %q", got)
	}
}
