//go:build amd64 || arm64

package confine

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/namespaces"
)

// connecting is a command that connects to sockets, in two ways, and says to which.
const connecting = `import socket, sys
for path in sys.argv[1:]:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            socket.socket(socket.AF_UNIX, kind).connect(path)
            print("connected to", path)
        except OSError as e: pass
print("done")
`

// TestSocketsInReadablePlaces: a daemon that listens below what commands can read
// is not to be reached; a socket below what they can write is.
func TestSocketsInReadablePlaces(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	p := newPlace(t)
	read := filepath.Join(filepath.Dir(p.ws), "r")
	daemons := filepath.Join(read, "daemon")
	must(t, os.MkdirAll(daemons, 0o755))
	must(t, os.WriteFile(filepath.Join(read, "program"), []byte("program"), 0o755))
	stream, dgram, own := filepath.Join(daemons, "s"), filepath.Join(read, "d"), filepath.Join(p.ws, "s")
	serve(t, "unix", stream)
	serve(t, "unix", own)
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: dgram, Net: "unixgram"})
	must(t, err)
	defer conn.Close()

	// The kernel's list does not tell where these are.
	moved, relative := filepath.Join(read, "moved"), filepath.Join(read, "relative")
	serve(t, "unix", moved+".new")
	must(t, os.Rename(moved+".new", moved))
	t.Chdir(read)
	serve(t, "unix", "relative")

	script := filepath.Join(p.ws, "connect.py")
	must(t, os.WriteFile(script, []byte(connecting), 0o644))
	argv := []string{"python3", script, stream, dgram, moved, relative, own}
	free, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	for _, path := range argv[2:] {
		if err != nil || !strings.Contains(string(free), "connected to "+path) {
			t.Fatalf("unconfined it cannot be reached either: %s", free)
		}
	}
	python, err := exec.LookPath("python3")
	must(t, err)
	for _, reason := range []string{"--allow-read", "packages downloaded before"} {
		t.Run(reason, func(t *testing.T) {
			policy := p.policy()
			policy.Read, policy.Asked = append(policy.Read, read), append(policy.Asked, read)
			policy.Reasons = map[string]string{read: reason}
			i, err := namespaces.New(namespaces.Isolation{Policy: policy, Workspace: p.ws})
			if err != nil {
				t.Skip(err)
			}
			defer i.Close()
			out, _ := p.in(t, i, nil, append([]string{python}, argv[1:]...)...)
			if !strings.Contains(out, "done") || !strings.Contains(out, "connected to "+own) {
				t.Errorf("its own socket is out of reach: %s", out)
			}
			for _, path := range []string{stream, dgram, moved, relative} {
				if strings.Contains(out, "connected to "+path) {
					t.Errorf("a daemon of the machine was reached: %s", out)
				}
			}
			if out, _ := p.inSh(t, i, "cat "+read+"/program"); out != "program" {
				t.Errorf("what lies beside the socket is gone: %s", out)
			}
		})
	}
}
