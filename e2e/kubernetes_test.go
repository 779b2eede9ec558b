//go:build linux

package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// manifests are those of one workspace, as they are applied with kubectl.
const manifests = "../deploy/kubernetes/base"

// A workload is the pod of the plain manifests, played by Podman.
type workload struct {
	*podman
	t     *testing.T
	file  string // all manifests
	again string // those to play when the volume is there
	name  string // of the container
}

// newWorkload prepares the image, the token and the manifests of a pod.
func newWorkload(t *testing.T) *workload {
	t.Helper()
	p := newPodman(t)
	busybox, err := staticBusybox()
	if err != nil {
		t.Fatal(err)
	}
	all, err := rootfs(busybox)
	if err != nil {
		t.Fatal(err)
	}
	server, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	// Kubernetes gives the volume to the group of the pod (fsGroup); Podman gives it the mode that the image has there.
	all = append(all, entry{"bin/perstack-base", 0o755, server, ""}, entry{"workspace/", 0o777, nil, ""})
	err = load(p, "localhost/perstack-base", all, "ENV PATH=/bin", "USER 65532:65532", "WORKDIR /workspace", `ENTRYPOINT ["perstack-base"]`, `CMD ["serve"]`)
	if err != nil {
		t.Fatal(err)
	}

	files, err := filepath.Glob(filepath.Join(manifests, "*.yaml"))
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	var documents, again [][]byte // once there is a volume, Podman refuses its claim
	for _, file := range files {
		document, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		switch filepath.Base(file) {
		case "kustomization.yaml":
			continue
		default:
			again = append(again, document)
			fallthrough
		case "persistentvolumeclaim.yaml":
			documents = append(documents, document)
		}
	}
	w := &workload{podman: p, t: t, file: filepath.Join(p.dir, "all.yaml"), again: filepath.Join(p.dir, "again.yaml")}
	for file, all := range map[string][][]byte{w.file: documents, w.again: again} {
		if err := os.WriteFile(file, bytes.Join(all, []byte("---\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// What kubectl create secret makes, as Podman keeps it.
	value, err := json.Marshal(map[string]string{"token": base64.StdEncoding.EncodeToString([]byte(secret))})
	if err != nil {
		t.Fatal(err)
	}
	create := p.command("secret", "create", "perstack-base-token", "-")
	create.Stdin = bytes.NewReader(value)
	if _, err := output(create); err != nil {
		t.Fatal(err)
	}
	return w
}

// play starts the pod and returns its server, once that says that it is well.
func (w *workload) play(file string) *site {
	w.t.Helper()
	w.must(w.t, "kube", "play", "--network", "none", file)
	w.name = w.must(w.t, "ps", "--filter", "ancestor=localhost/perstack-base", "--format", "{{.Names}}")
	pid, err := strconv.Atoi(w.must(w.t, "inspect", "--format", "{{.State.Pid}}", w.name))
	if err != nil {
		w.t.Fatal(err)
	}
	base := "http://" + forward(w.t, pid, 8080)
	for deadline := time.Now().Add(hangGuard); ; time.Sleep(20 * time.Millisecond) {
		if resp, err := browserless.Get(base + "/healthz"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return &site{process: &process{t: w.t, exited: make(chan struct{})}, url: base + "/mcp", base: base}
			}
		}
		if time.Now().After(deadline) {
			logs, _ := w.run("logs", w.name)
			w.t.Fatalf("the pod is not well: %s", logs)
		}
	}
}

// down removes the pod; its volume stays.
func (w *workload) down() {
	w.t.Helper()
	w.must(w.t, "kube", "down", w.file)
}

// TestKubernetesPod: the plain manifests make a pod in which a client works over HTTP with the token of the Secret, and
// over stdio by an exec into it; what it wrote is there when the pod is another.
func TestKubernetesPod(t *testing.T) {
	w := newWorkload(t)
	s := w.play(w.file)
	for name, c := range map[string]struct {
		header headers
		status int
	}{
		"the token":                      {nil, 200},
		"the name of the Service":        {headers{"Host": "perstack-base:8080"}, 200},
		"the token, through the router":  {headers{"Authorization": "", "X-Perstack-Base-Token": secret}, 200},
		"no token":                       {headers{"Authorization": ""}, 401},
		"another name":                   {headers{"Host": "evil.example"}, 403},
		"the name in another namespace?": {headers{"Host": "perstack-base.other.svc"}, 403},
	} {
		if resp, body := (knock{"POST", "/mcp", ping, c.header}).at(t, s.base); resp.StatusCode != c.status {
			t.Errorf("%s: %s %s", name, resp.Status, body)
		}
	}
	for _, modern := range []bool{false, true} {
		v := visit(s, modern)
		v.token = secret
		v.initialize()
		workIn(t, v.client)
	}
	t.Run("stdio", func(t *testing.T) {
		c := startCommand(t, w.command("exec", "-i", w.name, "perstack-base", "serve", "--sandbox", "strict"))
		c.initialize()
		workIn(t, c)
		c.in.Close()
		if code := c.end(); code != 0 {
			t.Errorf("exit code %d: %s", code, c.stderr.String())
		}
	})
	w.restricted()

	w.down()
	v := visit(w.play(w.again), false)
	v.token = secret
	v.initialize()
	if result, err := v.call("readTextFile", json.RawMessage(`{"path":"made.txt"}`)); err != nil || result.IsError || !strings.Contains(text(t, result), "by a command") {
		t.Errorf("what the first pod wrote: %v %v", result, err)
	}
}

// workIn has a client write a file, run a command on it, and try what the pod refuses.
func workIn(t *testing.T, c *client) {
	t.Helper()
	for _, call := range []struct{ tool, args, want string }{
		{"writeTextFile", `{"path":"a.txt","text":"one\n"}`, `"path":"/workspace/a.txt"`},
		{"exec", string(run(`cat a.txt; echo by a command > made.txt; echo "$HOME"; echo kept > "$TMPDIR/x" && cat "$TMPDIR/x"`)), `one\n`},
		{"exec", string(run(`cat made.txt; id -u`)), `by a command\n65532\n`},
		{"exec", string(run(`env | grep -c ` + secret + `; cat /proc/1/environ 2>&1 | grep -c ` + secret)), `0\n0\n`},
		{"exec", string(run(`touch /bin/x /etc/x 2>/dev/null || echo refused`)), "refused"},
		{"exec", string(run(`wget -q -T 5 -O - http://127.0.0.1:8080/healthz || echo refused`)), "refused"}, // the server itself
		{"readTextFile", `{"path":"/etc/passwd"}`, "outside_workspace"},
	} {
		result, err := c.call(call.tool, json.RawMessage(call.args))
		if err != nil || !strings.Contains(text(t, result), call.want) {
			t.Errorf("%s %s answered %v (%v)", call.tool, call.args, result, err)
		}
	}
}

// restricted checks what the server's process may do, from outside of what it says.
func (w *workload) restricted() {
	w.t.Helper()
	status := w.must(w.t, "exec", w.name, "cat", "/proc/1/status")
	for _, want := range []string{"Uid:\t65532\t65532", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"} {
		if !strings.Contains(status, want) {
			w.t.Errorf("process 1 lacks %q:\n%s", want, status)
		}
	}
	if out, err := w.run("exec", w.name, "touch", "/bin/x"); err == nil || !strings.Contains(err.Error(), "Read-only file system") {
		w.t.Errorf("the image can be written: %s %v", out, err)
	}
	w.must(w.t, "exec", w.name, "perstack-base", "healthcheck", "http://127.0.0.1:8080/healthz")
	if out, err := w.run("exec", w.name, "perstack-base", "healthcheck", "http://127.0.0.1:8081/healthz"); err == nil {
		w.t.Errorf("a server that is not there is well: %s", out)
	}
}
