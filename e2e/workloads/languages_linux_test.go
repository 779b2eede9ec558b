package workloads

import "strings"

var languages = []section{
	{"Go", []row{
		{
			name: "go build; a second session finds the cache of the first", needs: []string{"go"},
			files:    map[string]string{"go.mod": "module example.org/a\n", "a.go": "package a\n\nvar A = 1\n"},
			sessions: true,
			calls: []string{
				"go build -x . 2> log && grep -q '/compile ' log", // which shows that the next grep can fail
				"go build -x . 2> log && if grep '/compile ' log; then echo compiled again; else echo cached; fi",
			},
			shows: "cached\n",
		}, {
			name: "go vet, go test, go run", needs: []string{"go"}, slow: true,
			files: map[string]string{
				"go.mod": "module example.org/a\n", "a.go": "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"ran\") }\n",
				"a_test.go": "package main\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { t.TempDir() }\n",
			},
			calls: []string{"go vet . && go test -count=1 . && go run ."},
			shows: "ran\n",
		}, {
			name: "go build with modules downloaded before", needs: []string{"go", "python3"}, alone: true,
			files:  map[string]string{"a/go.mod": "module example.org/a\n", "a/a.go": "package a\n\nimport \"example.org/dep\"\n\nvar A = dep.Dep\n", "proxy.py": goProxy},
			before: "python3 proxy.py && cd a && export GOPROXY=file://$PWD/../proxy GOSUMDB=off GOFLAGS=-modcacherw && go mod edit -require example.org/dep@v1.0.0 && go mod tidy && go mod download && rm -r ../proxy",
			calls:  []string{"cd a && go build . && echo built"},
			shows:  "built\n",
		}, {
			name: "go get, go mod download", needs: []string{"go"},
			files: map[string]string{"go.mod": "module example.org/a\n"},
			calls: []string{patiently + "go get rsc.io/quote@v1.5.2" + gaveUp}, shows: byItself,
			says: noNetwork,
		}, {
			name: "go install of a tool and go get, with --network allow", needs: []string{"go"}, online: true, slow: true,
			files: map[string]string{"go.mod": "module example.org/a\n"},
			calls: []string{"go install golang.org/x/example/hello@latest && $(go env GOPATH)/bin/hello && go get golang.org/x/time@v0.5.0 && grep -o 'x/time v0.5.0' go.mod"},
			shows: "x/time v0.5.0\n",
		},
	}},
	{"JavaScript", []row{
		{
			name: "npm ci --offline with what npm downloaded before", needs: []string{"npm", "tar"}, alone: true,
			files:  map[string]string{"package/package.json": `{"name": "left", "version": "1.0.0"}`, "package/index.js": "module.exports = 'installed'\n", "lock.js": npmLock},
			before: "tar czf left.tgz package && npm cache add ./left.tgz && node lock.js && rm -r package left.tgz",
			calls:  []string{"npm ci --offline && node -p 'require(\"left\")'"},
			shows:  "installed\n",
		}, {
			name: "npm ci", needs: []string{"npm"},
			files: map[string]string{"lock.js": npmLock, "left.tgz": "not in any cache"}, before: "node lock.js",
			calls: []string{patiently + "npm ci" + gaveUp}, shows: byItself,
			says: noNetwork,
		}, {
			name: "npm ci, where a pipe hides its exit code", needs: []string{"npm"},
			files: map[string]string{"lock.js": npmLock, "left.tgz": "not in any cache"}, before: "node lock.js",
			calls: []string{"npm ci 2>&1 | tail -3"},
			says:  noNetwork,
		}, {
			name: "npx of a package that is not there", needs: []string{"npx"},
			calls: []string{patiently + "npx -y perstack-never-published" + gaveUp}, shows: byItself,
			says: noNetwork,
		}, {
			name: "npm install -g", needs: []string{"npm"},
			files: map[string]string{"package/package.json": `{"name": "left", "version": "1.0.0"}`},
			calls: []string{"npm install -g --offline ./package"},
			says:  writeOf(".../left", "..."),
		}, {
			name: "yarn 1: install --offline with what yarn downloaded before", needs: []string{"npm"}, alone: true, slow: true,
			before: installed("yarn@1") + "mkdir p && cd p && echo '{\"license\": \"MIT\"}' > package.json && ../tool/node_modules/.bin/yarn --silent add left-pad && rm -r node_modules",
			calls:  []string{"cd p && ../tool/node_modules/.bin/yarn install --offline --frozen-lockfile && node -p 'require(\"left-pad\")(41, 3)'"},
			shows:  " 41\n",
		}, {
			name: "yarn 1: add", needs: []string{"npm"}, slow: true,
			files: map[string]string{"p/package.json": `{"license": "MIT"}`}, before: installed("yarn@1") + "true",
			calls: []string{"cd p && " + patiently + "../tool/node_modules/.bin/yarn add is-even" + gaveUp}, shows: byItself,
			says: noNetwork,
		}, {
			name: "yarn 4: install from the project's own cache, and with what yarn downloaded before", needs: []string{"npm"}, alone: true, slow: true,
			files: map[string]string{
				"own/package.json": leftPad, "own/.yarnrc.yml": "enableGlobalCache: false\nnodeLinker: node-modules\n", "own/yarn.lock": "",
				"all/package.json": leftPad, "all/.yarnrc.yml": "nodeLinker: node-modules\n", "all/yarn.lock": "",
			},
			before: installed("@yarnpkg/cli-dist@4") + "for p in own all; do (cd $p && node " + yarn4 + " install && rm -r node_modules); done",
			calls:  []string{"for p in own all; do (cd $p && node " + yarn4 + " install --immutable && node -p 'require(\"left-pad\")(41, 3)'); done"},
			shows:  " 41\n",
		}, {
			name: "yarn 4: add", needs: []string{"npm"}, slow: true,
			files: map[string]string{"p/package.json": `{}`, "p/yarn.lock": ""}, before: installed("@yarnpkg/cli-dist@4") + "true",
			calls: []string{"cd p && " + patiently + "node " + yarn4 + " add is-even" + gaveUp}, shows: byItself,
			says: noNetwork,
		}, {
			name: "pnpm 10 and 12: install --offline with what pnpm downloaded before", needs: []string{"npm"}, alone: true, slow: true,
			before: pnpms + "for p in $(cat versions); do mkdir p$p && (cd p$p && echo {} > package.json && ../$p/node_modules/.bin/pnpm add left-pad && rm -r node_modules); done",
			calls:  []string{"for p in $(cat versions); do (cd p$p && ../$p/node_modules/.bin/pnpm install --offline --frozen-lockfile && node -p 'require(\"left-pad\")(41, 3)'); done"},
			shows:  " 41\n",
		}, {
			name: "pnpm 10 and 12: add", needs: []string{"npm"}, slow: true, before: pnpms + "true",
			calls: []string{"mkdir p && cd p && echo {} > package.json; for p in $(cat ../versions); do " + patiently + "../$p/node_modules/.bin/pnpm add is-even" + gaveUp + " || exit 1; done"}, shows: byItself,
			says: noNetwork,
		}, {
			name: "npm install, npm ci, and npx of a package, with --network allow", needs: []string{"npm"}, online: true, slow: true,
			files: map[string]string{"package.json": leftPad},
			calls: []string{"npm install --no-audit --no-fund && rm -r node_modules && npm ci && node -p 'require(\"left-pad\")(41, 3)' && npx -y semver@7 -r '>1' 2.0.0"},
			shows: " 41\n2.0.0\n",
		}, {
			name: "yarn 1, yarn 4, pnpm 10 and 12: add, with --network allow", needs: []string{"npm"}, online: true, slow: true,
			files:  map[string]string{"y/package.json": `{"license": "MIT"}`, "b/package.json": "{}", "b/yarn.lock": "", "b/.yarnrc.yml": "nodeLinker: node-modules\n"},
			before: pnpms + installed("yarn@1 @yarnpkg/cli-dist@4") + "for p in $(cat versions); do mkdir p$p && echo {} > p$p/package.json; done",
			calls: []string{"for d in y b; do (cd $d && if test $d = y; then ../tool/node_modules/yarn/bin/yarn.js add left-pad; else node " + yarn4 + " add left-pad; fi && node -p 'require(\"left-pad\")(1, 3)'); done > log 2>&1 || { cat log; exit 1; }; " +
				"for p in $(cat versions); do (cd p$p && ../$p/node_modules/.bin/pnpm add left-pad && node -p 'require(\"left-pad\")(41, 3)'); done"},
			shows: " 41\n",
		}, {
			name: "npm test, node --test", needs: []string{"npm"},
			files: map[string]string{"package.json": `{"scripts": {"test": "node --test"}}`, "a.test.js": "require('node:test')('it holds', () => {})\n"},
			calls: []string{"npm test"},
			shows: "pass 1",
		}, {
			name: "node --watch", needs: []string{"node"},
			files: map[string]string{"a.js": "console.log('first')\nsetInterval(() => {}, 1000)\n"},
			calls: []string{"node --watch a.js > log 2>&1 & p=$!; until grep -q first log; do sleep 0.1; done; echo \"console.log('second'); process.exit()\" > a.js; until grep -q second log; do sleep 0.5; touch a.js; done; kill $p; echo saw it"},
			shows: "saw it\n",
		}, {
			name: "os.userInfo(), os.networkInterfaces()", needs: []string{"node"},
			calls: []string{"node -p 'os.userInfo().username === process.env.USER && Object.keys(os.networkInterfaces()).includes(\"lo\")'"},
			shows: "true\n",
		}, {
			name: "typescript, jest, vitest, eslint, prettier, vite build from the registry, installed outside", needs: []string{"npm"}, slow: true,
			files:  map[string]string{"package.json": `{"scripts": {"test": "jest"}}`, "a.ts": "const a: number = 1\n", "a.test.js": "test('it holds', () => {})\n", "v.spec.js": "import { test } from 'vitest'\n\ntest('it holds', () => {})\n", "index.html": "<p>page</p>", "eslint.config.js": "module.exports = []\n"},
			before: "npm install --no-audit --no-fund typescript@5 jest@29 eslint@9 vite@5 vitest@2 prettier@3 > install.log",
			calls:  []string{"npx tsc --noEmit a.ts && npx eslint a.test.js && npx prettier --no-semi --single-quote --check v.spec.js && npx vite build && npx vitest run v.spec.js && npm test -- a.test.js 2>&1"},
			shows:  "1 passed",
		}, {
			name: "vite --host, webpack-dev-server, get-port, nodemon", needs: []string{"npm", "curl"}, slow: true,
			files:  map[string]string{"index.html": "<p>page</p>", "w.js": "console.log('packed')\n", "a.js": "console.log('ran')\n", "port.mjs": "import getPort from 'get-port'\n\nconsole.log(await getPort())\n"},
			before: "npm install --no-audit --no-fund --silent vite@5 webpack@5 webpack-cli@5 webpack-dev-server@5 get-port@7 nodemon@3",
			calls: []string{await + "b=node_modules/.bin; fetch() { curl -sS $1 | grep -q $2; }; port=$(node port.mjs); $b/vite --host --port $port --strictPort > v.log 2>&1 & v=$!; await fetch localhost:$port page; kill $v; " +
				"port=$(node port.mjs); $b/webpack serve --mode development --entry ./w.js --port $port > w.log 2>&1 & w=$!; await fetch localhost:$port/main.js packed; kill $w; " +
				"$b/nodemon -q a.js > n.log 2>&1 & n=$!; until grep -q ran n.log; do sleep 0.1; done; echo \"console.log('again')\" > a.js; until grep -q again n.log; do sleep 0.5; touch a.js; done; kill $n; echo all three"},
			shows: "all three\n",
		},
	}},
	{"Python", []row{
		{
			name: "venv, and pip install of a local wheel", needs: []string{"python3", "pip3"},
			files:  map[string]string{"wheel.py": wheel},
			before: "python3 -c 'import venv, ensurepip' && python3 wheel.py",
			calls:  []string{"python3 -m venv --without-pip v && python3 -m pip --python v/bin/python install -q --no-index --find-links . demo && v/bin/python -c 'import demo; print(demo.x)'"},
			shows:  "41\n",
		}, {
			name: "venv with a pip of its own", needs: []string{"python3"}, slow: true,
			before: "python3 -c 'import venv, ensurepip'",
			calls:  []string{"python3 -m venv v && v/bin/pip --version"},
			shows:  "/v/lib/",
		}, {
			name: "unittest", needs: []string{"python3"},
			files: map[string]string{"test_a.py": "import tempfile, unittest\n\nclass A(unittest.TestCase):\n    def test_a(self):\n        with tempfile.NamedTemporaryFile() as f: f.write(b'x')\n"},
			calls: []string{"python3 -m unittest 2>&1"},
			shows: "OK\n",
		}, {
			name: "pip install from the index", needs: []string{"python3", "pip3"},
			calls: []string{patiently + "python3 -m pip install --target there requests" + gaveUp}, shows: byItself,
			says: noNetwork,
		}, {
			name: "pip install from the index, with --network allow", needs: []string{"python3", "pip3"}, online: true, slow: true,
			calls: []string{"python3 -m pip install -q --target there iniconfig && PYTHONPATH=there python3 -c 'import iniconfig; print(iniconfig.__name__)'"},
			shows: "iniconfig\n",
		}, {
			name: "pytest", needs: []string{"python3", "pip3"}, slow: true,
			files:  map[string]string{"test_a.py": "def test_a(tmp_path):\n    (tmp_path / 'a').write_text('x')\n"},
			before: "python3 -m pytest --version || python3 -m pip install -q --target lib pytest",
			calls:  []string{"PYTHONPATH=lib python3 -m pytest -q"},
			shows:  "1 passed",
		}, {
			name: "packages of pip install --user", needs: []string{"python3"}, alone: true,
			before: `d=$(python3 -c 'import site; print(site.getusersitepackages())') && mkdir -p "$d" && echo 'x = 41' > "$d/ofuser.py"`,
			calls:  []string{"python3 -c 'import ofuser; print(ofuser.x)'"},
			shows:  "41\n",
		}, {
			name: "multiprocessing: Pool, Lock, SharedMemory, Manager", needs: []string{"python3"},
			files: map[string]string{"m.py": multiprocessing},
			calls: []string{"python3 m.py"},
			shows: "[1, 4, 9]\nshared\nmanaged\n",
		}, {
			name: "getpass, pwd, Path.owner, expanduser", needs: []string{"python3"},
			calls: []string{`python3 -c 'import getpass, os, pathlib, pwd; me = pwd.getpwuid(os.getuid()).pw_name; print(me == getpass.getuser() == pathlib.Path(".").owner(), os.path.expanduser("~" + me) != "~" + me)'`},
			shows: "True True\n",
		},
	}},
	{"C, C++, Rust, Java and others", []row{
		{
			name: "make -j2 and gcc", needs: []string{"make", "gcc"},
			files: map[string]string{"a.c": "int a(void) { return 41; }\n", "main.c": "#include <stdio.h>\nint a(void);\nint main(void) { printf(\"%d\\n\", a()); }\n", "Makefile": "prog: a.o main.o\n\t$(CC) -o $@ $^\n"},
			calls: []string{"make -j2 prog && ./prog"},
			shows: "41\n",
		}, {
			name: "cmake and ninja", needs: []string{"cmake", "ninja", "gcc"},
			files: map[string]string{"main.c": "#include <stdio.h>\nint main(void) { puts(\"built\"); }\n", "CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(p C)\nadd_executable(p main.c)\n"},
			calls: []string{"cmake -GNinja -B build > log && ninja -C build && build/p"},
			shows: "built\n",
		}, {
			name: "cargo new, build, test, run", needs: []string{"cargo"}, slow: true,
			calls: []string{"cargo new -q hello && cd hello && cargo test -q && cargo run -q"},
			shows: "Hello, world!\n",
		}, {
			name: "cargo build --offline with what cargo downloaded before", needs: []string{"cargo", "git"}, alone: true,
			files: map[string]string{
				"dep/Cargo.toml": "[package]\nname = \"dep\"\nversion = \"1.0.0\"\n", "dep/src/lib.rs": "pub const DEP: u8 = 41;\n",
				"a/Cargo.toml": "[package]\nname = \"a\"\nversion = \"1.0.0\"\n", "a/src/main.rs": "fn main() { println!(\"{}\", dep::DEP) }\n",
			},
			before: "(cd dep && git init -q . && git add . && git commit -qm first) && cd a && printf '[dependencies]\\ndep = { git = \"file://%s/../dep\" }\\n' $PWD >> Cargo.toml && cargo fetch && rm -rf ../dep",
			calls:  []string{"cd a && cargo run -q --offline"},
			shows:  "41\n",
		}, {
			name: "cargo add", needs: []string{"cargo"},
			files: map[string]string{"Cargo.toml": "[package]\nname = \"a\"\nversion = \"1.0.0\"\n", "src/lib.rs": ""},
			calls: []string{patiently + "cargo add serde" + gaveUp}, shows: byItself,
			says: noNetwork,
		}, {
			name: "cargo add and build, with --network allow", needs: []string{"cargo"}, online: true, slow: true,
			files: map[string]string{"Cargo.toml": "[package]\nname = \"a\"\nversion = \"1.0.0\"\n", "src/main.rs": "fn main() { println!(\"{}\", itoa::Buffer::new().format(41)) }\n"},
			calls: []string{"cargo add itoa && cargo run -q"},
			shows: "41\n",
		}, {
			name: "javac and java: temporary files, user.home, an HTTP server", needs: []string{"javac", "java"}, slow: true,
			files: map[string]string{"A.java": java},
			calls: []string{"javac A.java && java A"},
			shows: "temporary true\nhome true\nserved 200\n",
		}, {
			name: "perl", needs: []string{"perl"},
			calls: []string{"perl -e 'print +(getpwuid($<))[0] eq $ENV{USER} ? \"named\\n\" : \"unknown\\n\"'"},
			shows: "named\n",
		}, {
			name: "php", needs: []string{"php"},
			calls: []string{"php -r 'file_put_contents(tempnam(sys_get_temp_dir(), \"a\"), \"x\"); echo \"wrote\\n\";'"},
			shows: "wrote\n",
		}, {
			name: "ruby", needs: []string{"ruby"},
			calls: []string{"ruby -rtempfile -retc -e 'Tempfile.create { |f| f.write 1 }; puts Etc.getlogin'"},
			shows: "\n",
		}, {
			name: "toolchains below the home directory, on PATH: nvm, rustup, pyenv, asdf, sdkman, tools of uv, ~/bin",
			before: "for at in " + homeTools + "; do mkdir -p ~/$at ~/${at%/*}/lib && echo 41 > ~/${at%/*}/lib/part && printf '#!/bin/sh\\necho ran from %s' $at > ~/$at/tool-$(echo $at | tr -d ./) && chmod +x ~/$at/tool*; done; " +
				"mkdir -p ~/.local/bin ~/.local/share/uv/tools/t/bin && printf '#!/bin/sh\\necho ran by a link\\n' > ~/.local/share/uv/tools/t/bin/linked && chmod +x ~/.local/share/uv/tools/t/bin/linked && ln -sf ~/.local/share/uv/tools/t/bin/linked ~/.local/bin/",
			env:   []string{"PATH=HOME/" + strings.ReplaceAll(homeTools, " ", ":HOME/") + ":HOME/.local/bin:/usr/bin:/bin"},
			calls: []string{"for at in " + homeTools + "; do tool-$(echo $at | tr -d ./) | grep -q $at; done; linked"},
			shows: "ran by a link\n",
		},
	}},
}

// installed has npm install a package manager from the registry in the directory tool.
func installed(name string) string {
	return "npm install --no-audit --no-fund --silent --prefix tool " + name + " && "
}

const (
	homeTools = ".nvm/versions/node/v1/bin .cargo/bin .pyenv/shims .asdf/shims .sdkman/candidates/java/current/bin bin"
	leftPad   = `{"dependencies": {"left-pad": "1.3.0"}}`
	yarn4     = "../tool/node_modules/@yarnpkg/cli-dist/bin/yarn.js"
	pnpms     = "for p in 10 12; do npm install --no-audit --no-fund --silent --prefix $p pnpm@$p && $p/node_modules/.bin/pnpm --version && echo $p >> versions; done && "
)

// goProxy makes the directory proxy hold the module example.org/dep.
const goProxy = `import os, zipfile
top = "proxy/example.org/dep/@v/"
os.makedirs(top)
mod = "module example.org/dep\n"
open(top + "v1.0.0.mod", "w").write(mod)
open(top + "list", "w").write("v1.0.0\n")
open(top + "v1.0.0.info", "w").write('{"Version": "v1.0.0"}')
with zipfile.ZipFile(top + "v1.0.0.zip", "w") as z:
    z.writestr("example.org/dep@v1.0.0/go.mod", mod)
    z.writestr("example.org/dep@v1.0.0/dep.go", "package dep\n\nvar Dep = 1\n")
`

// npmLock writes the files of a project that needs left.tgz, as if from the registry.
const npmLock = `const fs = require('fs'), hash = require('crypto').createHash('sha512')
const integrity = 'sha512-' + hash.update(fs.readFileSync('left.tgz')).digest('base64')
const project = {name: 'project', version: '1.0.0', dependencies: {left: '1.0.0'}}
fs.writeFileSync('package.json', JSON.stringify(project))
fs.writeFileSync('package-lock.json', JSON.stringify({...project, lockfileVersion: 3, packages: {
  '': project,
  'node_modules/left': {version: '1.0.0', resolved: 'https://registry.npmjs.org/left/-/left-1.0.0.tgz', integrity},
}}))
`

// wheel writes the smallest wheel that pip installs.
const wheel = `import zipfile
with zipfile.ZipFile("demo-1.0-py3-none-any.whl", "w") as z:
    z.writestr("demo.py", "x = 41\n")
    z.writestr("demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
    z.writestr("demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    z.writestr("demo-1.0.dist-info/RECORD", "demo.py,,\ndemo-1.0.dist-info/METADATA,,\ndemo-1.0.dist-info/WHEEL,,\ndemo-1.0.dist-info/RECORD,,\n")
`

const multiprocessing = `import multiprocessing as m
from multiprocessing import shared_memory

def square(n): return n * n

def fill(name, lock):
    with lock:
        memory = shared_memory.SharedMemory(name=name)
        memory.buf[:6] = b"shared"
        memory.close()

if __name__ == "__main__":
    with m.Pool(2) as pool: print(pool.map(square, [1, 2, 3]))
    memory = shared_memory.SharedMemory(create=True, size=6)
    p = m.Process(target=fill, args=(memory.name, m.Lock()))
    p.start()
    p.join()
    print(bytes(memory.buf[:6]).decode())
    memory.unlink()
    with m.Manager() as manager:
        d = manager.dict(word="managed")
        print(d["word"])
`

const java = `import com.sun.net.httpserver.HttpServer;
import java.net.*;
import java.net.http.*;
import java.nio.file.*;

public class A {
  public static void main(String[] args) throws Exception {
    System.out.println("temporary " + Files.exists(Files.createTempFile("a", "b")));
    System.out.println("home " + Files.isDirectory(Path.of(System.getProperty("user.home"))));
    HttpServer s = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
    s.createContext("/", x -> { x.sendResponseHeaders(200, -1); x.close(); });
    s.start();
    URI at = URI.create("http://127.0.0.1:" + s.getAddress().getPort());
    int code = HttpClient.newHttpClient().send(HttpRequest.newBuilder(at).build(), HttpResponse.BodyHandlers.ofString()).statusCode();
    System.out.println("served " + code);
    System.exit(0);
  }
}
`
