//go:build amd64 || arm64

package confine

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/kernel"
)

// A task is ordinary work that must go well inside.
type task struct {
	name   string
	needs  string // programs
	script string
	want   string // in the output
}

var tasks = []task{
	{"shell", "", `echo a > a && mkdir -p d/e && mv a d/e/b && ln d/e/b c && ln -s c l && cat l && rm -r d c l`, "a"},
	{"modes", "", `touch f && chmod 640 f && stat -c %a f && chmod u+x ./f && (umask 077; mkdir k) && stat -c %a k && rm -r f k`, "640\n700"},
	{"owner", "", `touch f && chown $(id -u):$(id -g) f && chgrp $(id -g) f && ln -s f g && chown -h $(id -u) g && echo owned; rm -f f g`, "owned"},
	{"times", "", `touch -d '2001-02-03 UTC' f && TZ=UTC stat -c %y f && cp -p f g && TZ=UTC stat -c %y g && ln -s f l && touch -h -d '2002-02-03 UTC' l && TZ=UTC stat -c %y l; rm -f f g l`, "2001-02-03 00:00:00.000000000 +0000\n2001-02-03 00:00:00.000000000 +0000\n2002-02-03"},
	{"devices", "", `echo x > /dev/null && head -c 4 /dev/urandom | wc -c && echo out > /dev/stdout && echo err > /dev/stderr`, "4\nout\nerr"},
	{"shm", "", `f=$(mktemp -p /dev/shm) && echo shared > $f && cat $f && chmod 600 $f && rm $f`, "shared"},
	{"signals", "", `sleep 100 & kill -0 $! && kill -TERM $! ; wait $!; echo $?`, "143"},
	{"groups", "", `setsid sh -c 'sleep 100 & sleep 100' & sleep 0.1; kill -TERM -$!; wait $!; echo $?`, "143"},
	{"timeout", "timeout", `timeout -s KILL 0.1 sleep 100; echo $?`, "137"},
	{"tar", "tar", `mkdir -p t/u && echo x > t/u/v && chmod 751 t/u && tar cf t.tar t && rm -r t && tar xpf t.tar && stat -c %a t/u; rm -r t t.tar`, "751"},
	{"git", "git", `git init -q r && cd r && git config user.email a@b && git config user.name n && echo x > f && git add f && git commit -qm m && git checkout -qb b && git log --oneline | wc -l && git gc -q && git clone -q . ../r2 && git status --short; cd ..; rm -rf r r2`, "1"},
	{"python", "python3", `python3 -c '
import multiprocessing as m, os, tempfile, subprocess, threading, socket
def f(x): return x*x
if __name__ == "__main__":
    print(sum(m.Pool(3).map(f, range(10))))
    a, b = socket.socketpair(); a.send(b"hi"); print(b.recv(9))
    with tempfile.NamedTemporaryFile() as t: os.fchmod(t.fileno(), 0o640); print(oct(os.fstat(t.fileno()).st_mode & 0o777))
    with m.Manager() as g: d = g.dict(); d[1] = 2; print(dict(d))
'`, "285\nb'hi'\n0o640\n{1: 2}"},
	{"node", "node", `node -e 'require("child_process").execFile("echo",["sub"],(e,o)=>process.stdout.write(o)); require("fs").promises.chmod(".",0o755).then(()=>console.log("ok"))'`, "ok"},
	{"node-server", "node", `node -e 'const h=require("http");const s=h.createServer((q,r)=>r.end("served\n")).listen(0,()=>{const p=s.address().port;h.get("http://localhost:"+p,r=>{r.pipe(process.stdout);r.on("end",()=>s.close())})})'`, "served"},
	{"npm", "npm", `npm init -y >/dev/null && npm pkg set scripts.x="echo ran" && npm run -s x && npm ls; rm -f package.json`, "ran"},
	{"gcc", "gcc", `printf 'int puts(const char*);int main(){puts("built");}' > m.c && gcc -O1 -o m m.c && ./m; rm -f m m.c`, "built"},
	{"make", "make", `printf 'all: a b\na b:\n\t@echo made $@\n' > Makefile && make -j4; rm Makefile`, "made b"},
	{"pty", "python3", `python3 -c 'import pty; pty.spawn(["echo", "on a terminal"])'`, "on a terminal"},
	{"pty by name", "python3", `python3 -c '
import os, pty, subprocess, termios
m, s = pty.openpty(); name = os.ttyname(s); os.close(s)
t = os.open(name, os.O_RDWR); os.write(t, b"by name\n"); print(os.read(m, 99).decode().strip())
u = os.open(name, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK); print(os.isatty(u))
print(subprocess.run(["python3", "-c", "import os, sys; print(os.write(os.open(sys.argv[1], os.O_RDWR), bytes(3)))", name], capture_output=True, text=True).stdout)
'`, "by name\nTrue\n3"},
	{"script", "script", `script -qec 'tty > name; echo scripted' /dev/null < /dev/null; grep -c /dev/pts/ name; rm name`, "1"},
	{"watch", "node", `mkdir wd && node -e 'const fs=require("fs"); const w=fs.watch("wd",(e,n)=>{console.log(e,n);w.close()}); fs.writeFileSync("wd/new","")'; rm -r wd`, "rename new"},
	{"system v", "perl", `perl -MIPC::SysV=IPC_PRIVATE,IPC_CREAT,IPC_RMID,S_IRWXU -e '
my $m = msgget(IPC_PRIVATE, S_IRWXU); msgsnd($m, pack("l! a*", 1, "queued"), 0); msgrcv($m, my $b, 99, 0, 0); print substr($b, 8), "\n";
my $k = 0x5eed0000 + $$; my $i = shmget($k, 64, IPC_CREAT | S_IRWXU); shmwrite($i, "shared", 0, 6); shmread(shmget($k, 64, 0), my $s, 0, 6); print "$s\n"; shmctl($i, IPC_RMID, 0);
my $s = semget(IPC_PRIVATE, 1, S_IRWXU); print semop($s, pack("s!3", 0, 1, 0)) ? "raised" : "no: $!", "\n"; semctl($s, 0, IPC_RMID, 0);
'`, "queued\nshared\nraised"},
	{"unix-socket", "python3", `python3 -c '
import socket, threading
for name in ("s.sock", "\0confine-test-abstract"):
    l = socket.socket(socket.AF_UNIX); l.bind(name); l.listen()
    threading.Thread(target=lambda: l.accept()[0].send(b"heard")).start()
    c = socket.socket(socket.AF_UNIX); c.connect(name); print(c.recv(9).decode())
    l.close()
'; rm -f s.sock`, "heard\nheard"},
	{"interfaces", "python3", `python3 -c 'import socket; print([name for _, name in socket.if_nameindex()])'`, "'lo'"},
	{"interfaces by node", "node", `node -e 'console.log(JSON.stringify(require("os").networkInterfaces()))'`, "127.0.0.1"},
	{"interfaces by ip", "ip", `ip -o addr`, "127.0.0.1"},
	{"loopback", "python3 curl", `python3 -m http.server 0 > log 2>&1 & 
for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.2; port=$(sed -n 's/.*port \([0-9]*\) .*/\1/p' log); [ -n "$port" ] && break; done
curl -sS localhost:$port/log | head -c 0; curl -sS -o /dev/null -w '%{http_code} ' 127.0.0.1:$port/log; curl -sS -o /dev/null -w '%{http_code}\n' "[::1]:$port/log"; kill $!; rm -f log`, "200 200"},
	{"rebind", "python3", `python3 -c '
import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); a = s.getsockname(); s.close()
t = socket.socket(); t.bind(a); t.listen(); c = socket.create_connection(a); print("again")
t.close(); c.close()
try: socket.create_connection(a)
except ConnectionRefusedError: print("refused")
'`, "again\nrefused"},
	{"pip", "python3", `python3 -m venv --without-pip v && v/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'; rm -rf v`, "True"},
}

// TestWork does ordinary work on this machine and on lesser ones.
func TestWork(t *testing.T) {
	machines := map[string]kernel.Missing{"here": {}}
	for _, name := range []string{"landlock 3", "no duplicates"} {
		machines[name] = lesser[name]
	}
	for machine, without := range machines {
		t.Run(machine, func(t *testing.T) {
			p := newPlace(t)
			c := confiner(t, p.policy(), without)
			for _, k := range tasks {
				t.Run(k.name, func(t *testing.T) {
					for _, program := range strings.Fields(k.needs) {
						if _, err := exec.LookPath(program); err != nil {
							t.Skip(err)
						}
					}
					if machine != "here" && !testlevel.All() {
						t.Skip("not with everything")
					}
					r := p.sh(t, c, k.script)
					if r.err != nil || !strings.Contains(r.out, k.want) {
						t.Errorf("%v\n%s\nwant %q\nrefused: %+v", r.err, r.out, k.want, r.domain.Refusals())
					}
				})
			}
		})
	}
}

// TestGoToolchain builds and tests a program with a local server.
func TestGoToolchain(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip(err)
	}
	p := newPlace(t)
	c := confiner(t, p.policy(), kernel.Missing{})
	for name, text := range map[string]string{
		"go.mod": "module m\n",
		"m_test.go": `package m
import ("testing"; "net/http"; "net/http/httptest"; "os"; "os/exec")
func TestServer(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler()); defer s.Close()
	r, err := http.Get(s.URL); if err != nil || r.StatusCode != 404 { t.Fatal(r, err) }
	if err := os.Chmod(t.TempDir(), 0o700); err != nil { t.Fatal(err) }
	if out, err := exec.Command("echo", "x").Output(); err != nil || string(out) != "x\n" { t.Fatal(err) }
}
`} {
		must(t, os.WriteFile(filepath.Join(p.ws, name), []byte(text), 0o644))
	}
	r := p.do(t, c, []string{"GOCACHE=" + filepath.Join(p.ws, ".tmp/cache"), "GOFLAGS=-mod=mod", "GOTOOLCHAIN=local"}, "go", "test", "-vet=off", "./...")
	if r.err != nil || !strings.Contains(r.out, "ok ") {
		t.Errorf("%v %s %+v", r.err, r.out, r.domain.Refusals())
	}
}

// TestLoopbackBetweenCommands: a server that one command left running is reached
// by the next, and not by the next session's.
func TestLoopbackBetweenCommands(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	p := newPlace(t)
	c := confiner(t, p.policy(), kernel.Missing{})
	const server = `python3 -c '
import socket
l = socket.socket(); l.bind(("", 0)); l.listen()
open("port.new", "w").write(str(l.getsockname()[1])); import os; os.rename("port.new", "port")
while True: l.accept()[0].sendall(b"hello\n")
' > /dev/null 2>&1 &`
	first := p.sh(t, c, server)
	must(t, first.err)
	eventually(t, "the server did not start", func() bool { _, err := os.Stat(filepath.Join(p.ws, "port")); return err == nil })
	const client = `python3 -c '
import socket
print(socket.create_connection(("localhost", int(open("port").read()))).recv(99))'`
	if r := p.sh(t, c, client); r.err != nil || !strings.Contains(r.out, "hello") {
		t.Errorf("the same session: %v %s", r.err, r.out)
	}
	if r := p.sh(t, nil, client); r.err != nil {
		t.Errorf("from outside it should be reachable: %s", r.out)
	}
	r := p.sh(t, confiner(t, p.policy(), kernel.Missing{}), client)
	if r.err == nil {
		t.Error("another session reaches it")
	}
	r.wantRefusal(t, "a server outside the session listens")
}

func TestRefusalsAreOnRecord(t *testing.T) {
	p := newPlace(t)
	c := confiner(t, p.policy(), kernel.Missing{})
	for script, want := range map[string]string{
		"chmod 600 ../outside/secret":   "change the mode of " + p.outside + "/secret",
		"touch -d @0 ../outside/secret": "change the times of " + p.outside + "/secret",
		"unshare -m true":               "create namespaces",
		"kill -TERM 1":                  "signal the process 1 (",
		`python3 -c 'import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 9))'`: "send UDP to 192.0.2.1:9",
		`python3 -c 'import socket; socket.socket(type=socket.SOCK_DGRAM).connect(("192.0.2.1", 53))'`:     "look up a name at 192.0.2.1:53",
		"curl -sS http://192.0.2.1/": "connect to 192.0.2.1:80",
	} {
		if _, err := exec.LookPath(strings.Fields(script)[0]); err != nil {
			continue
		}
		r := p.sh(t, c, script)
		if r.err == nil {
			t.Errorf("%s went well", script)
		}
		r.wantRefusal(t, want)
	}
	if r := p.sh(t, c, "kill -0 1; ls / >/dev/null 2>&1; true"); len(r.domain.Refusals()) != 0 {
		t.Errorf("asking is on record: %+v", r.domain.Refusals())
	}
}

func TestNetworkAllowed(t *testing.T) {
	p := newPlace(t)
	policy := p.policy()
	policy.Network = true
	c := confiner(t, policy, kernel.Missing{})
	exe, err := os.Executable()
	must(t, err)
	for _, name := range []string{"tcp", "udp", "tcp-listen", "tcp-autobind", "tcp6-mapped"} {
		if r := p.do(t, c, append(scene(t, newPlace(t)), probeVar+"="+name), exe); r.err != nil {
			t.Errorf("%s: %s", name, r.out)
		}
	}
	for _, name := range []string{"unix-stream", "unix-dgram", "abstract", "mptcp", "packet"} {
		if r := p.do(t, c, append(scene(t, newPlace(t)), probeVar+"="+name), exe); r.err == nil {
			t.Errorf("%s got out", name)
		}
	}
}

func TestStatus(t *testing.T) {
	p := newPlace(t)
	c := confiner(t, p.policy(), kernel.Missing{})
	must(t, c.SelfTest())
	s := c.Status()
	if !s.Enforced() || !s.Seccomp || s.LandlockABI != kernel.LandlockABI() || !s.Kill.Proven {
		t.Errorf("%+v", s)
	}
	if b, err := json.Marshal(s); err != nil || !strings.Contains(string(b), `"files":{"proven":true`) {
		t.Errorf("%s %v", b, err)
	}
	open := p.policy()
	open.Read, open.Asked = append(open.Read, "/"), append(open.Asked, "/")
	if s := confiner(t, open, kernel.Missing{}).Status(); s.Files.Proven || s.Enforced() {
		t.Errorf("a policy that opens everything is said to confine: %+v", s.Files)
	}
	if s := confiner(t, p.policy(), kernel.Missing{LandlockAbove: 5}).Status(); s.Kill.Proven || !s.Enforced() {
		t.Errorf("without a signal scope: %+v", s)
	}
}
