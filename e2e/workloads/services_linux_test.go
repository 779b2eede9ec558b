package workloads

import "fmt"

// await is a shell function that tries a command until it works, for a minute or longer.
const await = "await() { for i in $(seq 600); do if \"$@\" > /dev/null 2>&1; then return; fi; sleep 0.1; done; echo in vain: \"$@\"; return 1; }; "

var services = []section{
	{"Servers and sockets", []row{
		{
			name: "a server and curl in the same call", needs: []string{"python3", "curl"},
			calls: []string{await + "echo page > index.html; python3 -um http.server 0 --bind 127.0.0.1 > log 2>&1 & p=$!; await grep -q port log; port=$(grep -o 'port [0-9]*' log | cut -c6-); await curl -s 127.0.0.1:$port; curl -s localhost:$port; kill $p"},
			shows: "page\n",
		}, {
			name: "a server of one call and curl in a later one, on 127.0.0.1, localhost and ::1", needs: []string{"node", "curl"},
			files: map[string]string{"server.js": "require('http').createServer((q, a) => a.end('served ')).listen(0, '::', function () { require('fs').writeFileSync('port', '' + this.address().port) })\n"},
			calls: []string{await + "(node server.js > log 2>&1 &); await test -s port", "for host in 127.0.0.1 localhost '[::1]'; do curl -sS -g http://$host:$(cat port)/; done"},
			shows: "served served served ",
		}, {
			name: "connecting to a server that no command started", needs: []string{"curl"},
			calls: []string{"curl -sS http://127.0.0.1:$PORT/"},
			says:  blocked + "connect to 127.0.0.1:PORT, where a server outside the session listens (the network is closed; ask the user to add --network allow to the arguments of perstack-base)", open: true,
		}, {
			name: "curl https://...", needs: []string{"curl"},
			calls: []string{"curl -sS https://www.example.org/"},
			says:  noNetwork,
		}, {
			name: "Unix sockets: streams, pairs, abstract names", needs: []string{"python3"},
			files: map[string]string{"unix.py": unixSockets},
			calls: []string{"python3 unix.py"},
			shows: "stream\npair\nabstract\n",
		}, {
			name: "Unix datagram socket pairs", needs: []string{"python3"},
			calls: []string{`python3 -c 'import socket as s; a, b = s.socketpair(s.AF_UNIX, s.SOCK_DGRAM); a.send(b"pair"); print(b.recv(99).decode())'`},
			shows: "pair\n",
		}, {
			name: "Unix datagram sockets", needs: []string{"python3"},
			files: map[string]string{"unix.py": unixDatagrams},
			calls: []string{"python3 unix.py"},
			shows: "datagram\nto a path\npair\n",
		}, {
			name: "UDP on loopback", needs: []string{"python3"},
			files: map[string]string{"udp.py": udp},
			calls: []string{"python3 udp.py"},
			shows: "bound\nconnected\n",
		}, {
			name: "UDP on loopback, by node", needs: []string{"node"},
			files: map[string]string{"udp.js": udpOfNode},
			calls: []string{"node udp.js"},
			shows: "answer: question\n",
		}, {
			name: "ip address, hostname -I", needs: []string{"ip"},
			calls: []string{"ip -br address show lo && hostname -I > /dev/null && echo looked"},
			shows: "looked\n",
		}, {
			name: "ping", needs: []string{"ping"},
			calls: []string{"ping -c1 -W1 192.0.2.1"},
			says:  blocked + "open a raw network socket",
		}, {
			name: "dig", needs: []string{"dig"},
			calls: []string{"dig +tries=1 +timeout=2 @192.0.2.1 example.org"},
			says:  noNetwork,
		}, {
			name: "docker", needs: []string{"docker"},
			calls: []string{"docker -H unix://$OUTSIDE/engine.sock ps"},
			says:  blocked + "connect to OUTSIDE/engine.sock" + fmt.Sprintf(mayWrite, "OUTSIDE/engine.sock"),
		},
	}},
	{"Databases", []row{
		{
			name: "sqlite3 with a write-ahead log", needs: []string{"sqlite3"},
			calls: []string{"sqlite3 a.db 'pragma journal_mode=wal; create table t(x); insert into t values (41)' && sqlite3 a.db 'select x from t'"},
			shows: "41\n",
		}, {
			name: "redis over TCP and over a socket", needs: []string{"redis-server", "redis-cli"},
			calls: []string{await + "redis-server --port 0 --unixsocket $PWD/s --save '' > log 2>&1 & p=$!; await redis-cli -s s ping; redis-cli -s s set a 41; redis-cli -s s config set port 16399; redis-cli -p 16399 get a; kill $p"},
			shows: "41\n",
		}, {
			name: "a PostgreSQL of one's own", needs: []string{"initdb", "pg_ctl", "postgres"}, plain: true,
			calls: []string{"initdb -D data -A trust > log && pg_ctl -w -D data -o \"-k $PWD -h ''\" -l log start && psql -h $PWD -d postgres -Atc 'select 40 + 1'; pg_ctl -D data stop -m fast"},
			shows: "41\n",
		},
	}},
	{"Browsers and media", []row{
		{
			name: "chromium --no-sandbox with a server on localhost", needs: []string{"chromium", "python3"}, slow: true, told: true,
			calls: []string{await + "echo '<p>page</p>' > index.html; python3 -um http.server 0 --bind 127.0.0.1 > log 2>&1 & p=$!; await grep -q port log; port=$(grep -o 'port [0-9]*' log | cut -c6-); chromium --headless --no-sandbox --disable-gpu --dump-dom http://localhost:$port/; kill $p"},
			shows: "<p>page</p>",
		}, {
			name: "chromium with a sandbox of its own", needs: []string{"chromium"}, slow: true,
			calls: []string{"chromium --headless --disable-gpu --dump-dom about:blank"},
			says:  blocked + "make a sandbox of a browser's own: start it with --no-sandbox, this one holds it already",
		}, {
			name: "ffmpeg", needs: []string{"ffmpeg"},
			calls: []string{"ffmpeg -loglevel error -f lavfi -i color=red:s=32x32:d=0.2 a.mp4 && ffmpeg -loglevel error -i a.mp4 -frames:v 1 a.png && head -c 4 a.png | tail -c 3"},
			shows: "PNG",
		}, {
			name: "fonts", needs: []string{"fc-list"},
			before: "fc-list | grep -q .",
			calls:  []string{"fc-list : family | grep -c . > n && test $(cat n) -gt 0 && fc-match sans && echo found"},
			shows:  "found\n",
		}, {
			name: "ImageMagick", needs: []string{"convert-im6.q16"},
			calls: []string{"convert-im6.q16 -size 8x8 xc:blue a.png && identify-im6.q16 a.png"},
			shows: "PNG 8x8",
		},
	}},
}

const unixDatagrams = `import socket as s
def talk(a, b, word):
    a.sendall(word); print(b.recv(99).decode())
server = s.socket(s.AF_UNIX, s.SOCK_DGRAM); server.bind("dgram")
client = s.socket(s.AF_UNIX, s.SOCK_DGRAM); client.connect("dgram")
talk(client, server, b"datagram")
client.sendto(b"to a path", "dgram"); print(server.recvfrom(99)[0].decode())
talk(*s.socketpair(s.AF_UNIX, s.SOCK_DGRAM), b"pair")
`

const unixSockets = `import socket as s
def talk(a, b, word):
    a.sendall(word); print(b.recv(99).decode())
server = s.socket(s.AF_UNIX); server.bind("stream"); server.listen()
client = s.socket(s.AF_UNIX); client.connect("stream")
talk(client, server.accept()[0], b"stream")
talk(*s.socketpair(s.AF_UNIX, s.SOCK_SEQPACKET), b"pair")
server = s.socket(s.AF_UNIX); server.bind(""); server.listen()
client = s.socket(s.AF_UNIX); client.connect(server.getsockname())
talk(client, server.accept()[0], b"abstract")
`

const udpOfNode = `const dgram = require("dgram")
const server = dgram.createSocket("udp4"), client = dgram.createSocket("udp4")
server.on("message", (text, from) => server.send("answer: " + text, from.port, from.address))
client.on("message", text => { console.log(String(text)); server.close(); client.close() })
server.bind(0, "127.0.0.1", () => client.send("question", server.address().port, "127.0.0.1"))
`

const udp = `import socket as s
server = s.socket(s.AF_INET, s.SOCK_DGRAM); server.bind(("127.0.0.1", 0)); server.settimeout(60)
client = s.socket(s.AF_INET, s.SOCK_DGRAM)
client.sendto(b"bound", server.getsockname()); print(server.recv(99).decode())
client.connect(server.getsockname()); client.send(b"connected"); print(server.recv(99).decode())
`
