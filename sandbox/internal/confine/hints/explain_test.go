package hints

import (
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"io/fs"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestExplain(t *testing.T) {
	there := map[string]string{
		"/etc/passwd": "/etc/passwd", "/ws/out": "/home/u/secret file", "/usr/bin/env": "/usr/bin/env",
		"/root": "/root", "/usr": "/usr", "/ws/mine": "/ws/mine", "/home/u/a b": "/home/u/a b",
	}
	x := Explainer{
		Policy:  policy.Policy{Read: []string{"/usr"}, Write: []string{"/ws"}, Devices: []string{"/dev/null"}},
		Dir:     "/ws",
		Private: []string{"/private"},
		Resolve: func(p string) (string, error) {
			if r, ok := there[p]; ok {
				return r, nil
			}
			return "", fs.ErrNotExist
		},
	}
	there["/usr/bin/sh"], there["/usr/bin/bash"], there["/usr/bin/touch"], there["/usr/bin/cat"] = "/usr/bin/dash", "/usr/bin/bash", "/usr/bin/touch", "/usr/bin/cat"
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
		{"/usr/bin/sh: 1: cannot create mine: Permission denied", nil}, // the shell only says so
		{"/usr/bin/bash: line 7: mine: Permission denied", nil},
		{"/usr/bin/touch: cannot touch 'mine': Permission denied", nil},
		{"/usr/bin/cat: /etc/passwd: Permission denied", []string{passwd}},
		{"/etc/passwd: Permission denied", []string{either}},
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
		{"su: Critical error - immediate abort", []string{"blocked by the sandbox: become another user"}},
		{"fatal: repository '/root' does not exist", []string{
			"blocked by the sandbox: read /root (outside the workspace; ask the user to add --allow-read /root to the arguments of perstack-base)"}},
		{"fatal: repository '/ws/nothing' does not exist", nil},
		{"warning: opening /proc/self/mem file failed: Permission denied (13)", nil},
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
	var l Ledger
	l.Add(Refusal{Command: "curl", What: "connect to 10.0.0.1:443", Permit: PermitNetworkFlag})
	for range 2 {
		l.Add(Refusal{Command: "mount", What: "mount or administer the system"})
	}
	l.Add(Refusal{What: "connect to /run/engine.sock", Permit: "--allow-write /run/engine.sock"})
	l.Add(Refusal{What: "connect to /run/engine.sock", Permit: "--allow-write /run/engine.sock"})
	x := Explainer{Resolve: func(p string) (string, error) { return p, nil }}
	got := x.Explain("dial unix /run/engine.sock: connect: permission denied", l.List()) // told once
	want := []string{
		"blocked by the sandbox: connect to /run/engine.sock (outside the workspace; ask the user to add --allow-write /run/engine.sock to the arguments of perstack-base)",
		"blocked by the sandbox: mount or administer the system",
		"blocked by the sandbox: connect to 10.0.0.1:443 (the network is closed; ask the user to add --network allow to the arguments of perstack-base)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestExplainIsBounded(t *testing.T) {
	var l Ledger
	for i := range 10 * maxRefusals {
		l.Add(Refusal{What: strings.Repeat("x", i)})
	}
	if n := len(l.List()); n != maxRefusals {
		t.Errorf("%d refusals kept, want %d", n, maxRefusals)
	}
	if n := len(Explainer{}.Explain("", l.List())); n != maxExplained {
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
	x := Explainer{Hidden: true, Dir: "/ws", Listens: func(port string) bool { return port == "8080" }, Policy: policy.Policy{Read: []string{"/usr"}, Write: []string{"/ws", "/home/ws"}},
		Resolve: func(p string) (string, error) {
			switch p {
			case "/etc/passwd", "/etc", "/usr", "/usr/bin/env", "/ws/mine", "/home", "/home/u", "/tmp", "/run/engine.sock":
				return p, nil
			case "/ws/link":
				return "/etc/passwd", nil
			}
			return "", fs.ErrNotExist
		}}
	for stderr, want := range map[string]string{
		"cat: /etc/passwd: No such file or directory":                                                        "read /etc/passwd (outside",
		"sh: 1: cannot open /etc/passwd: No such file":                                                       "read /etc/passwd (outside",
		"sh: 1: cannot create /home/u/x: Directory nonexistent":                                              "write /home/u/x (outside the workspace; ask the user to add --allow-write /home/u to",
		"bash: line 1: /home/u/x: No such file or directory":                                                 "write /home/u/x (outside",
		"touch: cannot touch '/etc/passwd': No such file or dir":                                             "write /etc/passwd (outside",
		"cat: /home/u/x: No such file or directory":                                                          "",
		"bash: line 1: /tmp/a/b: No such file or directory":                                                  "", // not even outside
		"bash: line 1: /tmp/b: No such file or directory":                                                    "",
		"bash: line 1: /home/x: No such file or directory":                                                   "", // it holds the workspace
		"cat: link: No such file or directory":                                                               "read /ws/link (outside",
		"cat: /no/such: No such file or directory":                                                           "",
		"cat: such: No such file or directory":                                                               "",
		"cat: /usr/bin/env: No such file or directory":                                                       "",
		"touch: cannot touch '/usr/x': Read-only file system":                                                "write /usr/x (outside",
		"rm: cannot remove '/usr/bin/env': Read-only file system":                                            "write /usr/bin/env (outside",
		"curl: (6) Could not resolve host: example.org":                                                      "reach the network (the network is closed; ask the user to add --network allow",
		"connect: Network is unreachable":                                                                    "reach the network",
		"cat: /etc/passwd: Permission denied":                                                                "read /etc/passwd (outside",
		"curl: (7) Failed to connect to localhost port 8080 after 0 ms: Couldn't connect to server":          "connect to 127.0.0.1:8080, where a server outside the session listens (the network is closed; ask the user to add --network allow",
		"curl: (7) Failed to connect to localhost port 8081 after 0 ms: Couldn't connect to server":          "",
		"Error: connect ECONNREFUSED 127.0.0.1:8080":                                                         "connect to 127.0.0.1:8080, where",
		"dial tcp [::1]:8080: connect: connection refused":                                                   "connect to 127.0.0.1:8080, where",
		`psql: error: connection to server at "localhost" (127.0.0.1), port 8080 failed: Connection refused`: "connect to 127.0.0.1:8080, where",
		";; UDP setup with 192.0.2.1#53 failed: network unreachable.":                                        "reach the network",
		"ERROR: No matching distribution found for requests":                                                 "reach the network",
		"ping: socket: Operation not permitted":                                                              "open a raw network socket",
		"ModuleNotFoundError: No module named 'requests'":                                                    "",
		"sh: 1: cannot create /etc/new: Directory nonexistent":                                               "write /etc/new (outside",
		"sh: 1: cannot create /no/such/new: Directory nonexistent":                                           "",
		"fatal: repository '/etc' does not exist":                                                            "read /etc (outside",
		"unshare: unshare failed: Permission denied":                                                         "create namespaces",
		"strace: attach: ptrace(PTRACE_SEIZE, 4711): Invalid argument":                                       "stop processes at their exit",
		"bwrap: Creating new namespace failed: Permission denied":                                            "create namespaces",
		"Cannot connect to the Docker daemon at unix:///run/engine.sock. Is the docker daemon running?":      "connect to /run/engine.sock (outside the workspace; ask the user to add --allow-write /run/engine.sock to",
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

// TestBrowserHint: Chromium's own words do not say what to do here.
func TestBrowserHint(t *testing.T) {
	for _, line := range []string{
		"[1:1:0101/000000.1:FATAL:zygote_host_impl_linux.cc(132)] No usable sandbox! Update your kernel",
		"[713:713:1123/173846.155564:FATAL:sandbox/linux/services/credentials.cc:137] Check failed: . : Permission denied (13)",
		"[1:1:0101/000000.1:ERROR:zygote_host_impl_linux.cc(100)] Running as root without --no-sandbox is not supported.",
	} {
		got := Explainer{}.Explain(line+"\n"+line, nil)
		if len(got) != 1 || !strings.Contains(got[0], "--no-sandbox") {
			t.Errorf("%s: %q", line, got)
		}
	}
	if got := (Explainer{}).Explain("sandbox: ok", nil); len(got) != 0 {
		t.Error(got)
	}
}

// TestComplaints: what programs say through a pipe is heard, what they print is not.
func TestComplaints(t *testing.T) {
	for stdout, want := range map[string]string{
		"one\ncat: /etc/shadow: Permission denied\n":                                             "cat: /etc/shadow: Permission denied",
		"npm error request to https://r/ failed, reason: getaddrinfo EAI_AGAIN r\n":              "npm error request to https://r/ failed, reason: getaddrinfo EAI_AGAIN r",
		" ERR_PNPM_META_FETCH_FAIL  GET https://r/a: failed, reason: getaddrinfo EAI_AGAIN r\n":  " ERR_PNPM_META_FETCH_FAIL  GET https://r/a: failed, reason: getaddrinfo EAI_AGAIN r",
		"ERROR: No matching distribution found for requests\n":                                   "ERROR: No matching distribution found for requests",
		"➤ YN0001: │ RequestError: getaddrinfo EAI_AGAIN r\n":                                    "➤ YN0001: │ RequestError: getaddrinfo EAI_AGAIN r",
		"\u2009EAI_AGAIN\u2009 request to https://r/a failed, reason: getaddrinfo EAI_AGAIN r\n": "\u2009EAI_AGAIN\u2009 request to https://r/a failed, reason: getaddrinfo EAI_AGAIN r",
		"curl: (6) Could not resolve host: example.org":                                          "curl: (6) Could not resolve host: example.org",
		"Where it says \"cat: /etc/shadow: Permission denied\", ask.\n":                          "",
		"- *Permission denied below /tmp*: commands write in the workspace\n":                    "",
		"cat: /etc/shadow: Permission denied\n" + strings.Repeat("a line\n", 1000):               "",
	} {
		if got := Complaints(stdout); got != want {
			t.Errorf("%.80q: heard %q, not %q", stdout, got, want)
		}
	}
}

// TestListensOnLoopback sees a listener come and go.
func TestListensOnLoopback(t *testing.T) {
	for _, at := range []string{"127.0.0.1:0", "[::1]:0", "0.0.0.0:0", "[::]:0"} {
		l, err := net.Listen("tcp", at)
		if err != nil {
			t.Log(err)
			continue
		}
		_, port, _ := net.SplitHostPort(l.Addr().String())
		if _, err := os.Stat("/proc/net/tcp"); err == nil && !ListensOnLoopback(port) {
			t.Errorf("nobody listens on %s", l.Addr())
		}
		l.Close()
	}
	if ListensOnLoopback("0") || ListensOnLoopback("x") {
		t.Error("somebody listens on what is no port")
	}
}

// TestUnreachedHosts: the words of programs about a host that rules do not permit;
// what the gate has on record is told instead.
func TestUnreachedHosts(t *testing.T) {
	refuses := func(host string, port uint16) string {
		if host == "good.example" {
			return ""
		}
		return "no " + host + ":" + strconv.Itoa(int(port))
	}
	const unnamed = "blocked by the sandbox: network to an address that no rule of --network names (ask the user to add it to --network in the arguments of perstack-base)"
	for line, want := range map[string]string{
		"curl: (7) Failed to connect to 93.184.216.35 port 80 after 0 ms: Couldn't connect to server":    "no 93.184.216.35:80",
		"curl: (7) Failed to connect to good.example port 80 after 0 ms: Couldn't connect to server":     "",
		"curl: (7) Failed to connect to evil.example port 8443 after 0 ms: Couldn't connect to server":   "no evil.example:8443",
		"ssh: connect to host github.com port 22: Network is unreachable":                                "no github.com:22",
		"Connecting to 93.184.216.35:80... failed: Network is unreachable.":                              unnamed,
		"Connecting to evil.example (evil.example)|93.184.216.35|:80... failed: Network is unreachable.": unnamed,
		"Error: connect ENETUNREACH 93.184.216.35:443 - Local (0.0.0.0:0)":                               "no 93.184.216.35:443",
		"dial tcp 93.184.216.35:443: connect: network is unreachable":                                    "no 93.184.216.35:443",
		"dial tcp [2606:2800::1]:443: connect: network is unreachable":                                   "no 2606:2800::1:443",
		`psql: error: connection to server at "10.1.2.4", port 5432 failed: Network is unreachable`:      "no 10.1.2.4:5432",
		"OSError: [Errno 101] Network is unreachable":                                                    unnamed,
		"curl: (7) Failed to connect to 127.0.0.1 port 9 after 0 ms: Couldn't connect to server":         "",
		"curl: (6) Could not resolve host: gone.good.example":                                            "",
		"npm error code ENETUNREACH": unnamed,
		"Failed to connect to 2606:2800::1 port 443 after 0 ms: Couldn't connect to server": "no 2606:2800::1:443",
		"Error: connect ENETUNREACH 2606:2800::1:443 - Local (:::0)":                        unnamed,
	} {
		for _, hidden := range []bool{true, false} {
			x := Explainer{Hidden: hidden, Refuses: refuses, Resolve: func(string) (string, error) { return "", fs.ErrNotExist }}
			got := x.Explain(line, nil)
			if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || got[0] != want) {
				t.Errorf("%s: %q", line, got)
			}
			x.Said = []string{"on record"}
			if got := x.Explain(line, nil); len(got) != 1 || got[0] != "on record" {
				t.Errorf("%s, with something on record: %q", line, got)
			}
		}
	}
}

// TestRulesAreNotAnsweredWithAWiderWall: where rules say what can be reached, nobody is
// told to open all of the network.
func TestRulesAreNotAnsweredWithAWiderWall(t *testing.T) {
	x := Explainer{Hidden: true, Listens: func(string) bool { return true }, Refuses: func(string, uint16) string { return "" },
		Resolve: func(string) (string, error) { return "", fs.ErrNotExist }}
	for _, line := range []string{"curl: (7) Failed to connect to localhost port 8080 after 0 ms: Couldn't connect to server", "perstack-base: dial tcp 127.0.0.1:8080: connect: connection refused"} {
		said := strings.Join(x.Explain(line, nil), "\n")
		if !strings.Contains(said, "name that in --network") || strings.Contains(said, "network allow") || strings.Contains(said, "is closed") {
			t.Errorf("%s: %s", line, said)
		}
	}
}

// TestExplainUnjudged: where nothing judges single calls, those that are refused for that
// are told, and a file that is closed is not taken for one.
func TestExplainUnjudged(t *testing.T) {
	x := Explainer{Policy: policy.Policy{Write: []string{"/ws"}}, Dir: "/ws", Resolve: func(p string) (string, error) { return p, nil }, Unjudged: true}
	for line, told := range map[string]bool{
		"touch: setting times of 'a': Permission denied":                          true,
		"chmod: changing permissions of 'a': Permission denied":                   true,
		"error: chmod on /ws/.git/config.lock failed: Permission denied":          true,
		"cp: preserving times for 'b': Permission denied":                         true,
		"OSError: [Errno 13] bind: EACCES":                                        true,
		"cat: a: Permission denied":                                               false,
		"sometimes: connecting":                                                   false,
		"curl: (7) Failed to connect to 127.0.0.1 port 1: Couldn't connect there": false,
	} {
		want := 0
		if told {
			want = 1
		}
		if got := x.Explain(line, nil); len(got) != want || told && got[0] != "blocked by the sandbox: "+unjudged {
			t.Errorf("%q: %q", line, got)
		}
		x.Unjudged = false
		if got := x.Explain(line, nil); len(got) > 0 {
			t.Errorf("%q, where all is judged: %q", line, got)
		}
		x.Unjudged = true
	}
}
