package confine

import (
	"io/fs"
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
		Policy:  Policy{Read: []string{"/usr"}, Write: []string{"/ws"}, Devices: []string{"/dev/null"}},
		Dir:     "/ws",
		Private: []string{"/private"},
		Resolve: func(p string) (string, error) {
			if r, ok := there[p]; ok {
				return r, nil
			}
			return "", fs.ErrNotExist
		},
	}
	const either = "blocked by the sandbox: read or write /etc/passwd (outside the workspace; ask the user to add --allow-read /etc/passwd, or --allow-write /etc/passwd if it is to be written, to the arguments of perstack-base)"
	passwd := "blocked by the sandbox: read /etc/passwd (outside the workspace; ask the user to add --allow-read /etc/passwd to the arguments of perstack-base)"
	for _, tt := range []struct {
		stderr string
		want   []string
	}{
		{"cat: /etc/passwd: Permission denied\n", []string{passwd}},
		{"cat: can't open '/etc/passwd': Permission denied\n", []string{passwd}}, // busybox
		{"PermissionError: [Errno 13] Permission denied: '/etc/passwd'", []string{either}},
		{"PermissionError: [Errno 13] Permission denied: b'/etc/passwd'", []string{either}},
		{"Error: EACCES: permission denied, open '/etc/passwd'", []string{either}},
		{"2026/01/01 open /etc/passwd: permission denied", []string{either}},
		{"cat: /etc/passwd: Permission denied\ncat: /etc/passwd: Permission denied\n", []string{passwd}},
		{"ls: cannot open directory '/root': Permission denied", []string{
			"blocked by the sandbox: read /root (outside the workspace; ask the user to add --allow-read /root to the arguments of perstack-base)"}},
		{"touch: cannot touch '/usr/x': Permission denied", []string{
			"blocked by the sandbox: write /usr/x (outside the workspace; ask the user to add --allow-write /usr to the arguments of perstack-base)"}},
		{"sh: 1: cannot create /usr/bin/env: Permission denied", []string{
			"blocked by the sandbox: write /usr/bin/env (outside the workspace; ask the user to add --allow-write /usr/bin/env to the arguments of perstack-base)"}},
		{"cat: out: Permission denied", []string{
			"blocked by the sandbox: read /ws/out (outside the workspace; ask the user to add --allow-read /home/u/secret file to the arguments of perstack-base)"}},
		{"cat: '/home/u/a b': Permission denied", []string{
			"blocked by the sandbox: read /home/u/a b (outside the workspace; ask the user to add --allow-read /home/u/a b to the arguments of perstack-base)"}},
		{"go: Get https://example.org/root/x: permission denied", nil}, // the rest of a URL is no path
		{"cat: /ws/mine: Permission denied", nil},
		{"cat: mine: Permission denied", nil},
		{"cat: nothing: Permission denied", nil},
		{"cat: /etc/passwd: No such file or directory", nil},
		{"bash: line 1: /tmp/f: Permission denied", []string{
			"blocked by the sandbox: write /tmp/f (outside the workspace; ask the user to add --allow-write /tmp to the arguments of perstack-base)"}},
		{"touch: cannot touch '/private/skill/x': Permission denied", []string{
			"blocked by the sandbox: change /private/skill/x, which is read only: write in the workspace, $TMPDIR or $HOME"}},
		{"sudo: /etc/sudo.conf: Permission denied", []string{"blocked by the sandbox: become another user"}},
		{"su: Authentication failure", []string{"blocked by the sandbox: become another user"}},
		{"go: writing stat cache: open /root/go/pkg/mod/cache/x: permission denied", nil},
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
		"blocked by the sandbox: connect to 10.0.0.1:443 (the network is closed; ask the user to add --network allow to the arguments of perstack-base)",
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
			return "", fs.ErrNotExist
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
		"curl: (6) Could not resolve host: example.org":           "reach the network (the network is closed; ask the user to add --network allow",
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
