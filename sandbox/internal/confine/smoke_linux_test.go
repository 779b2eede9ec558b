//go:build amd64 || arm64

package confine

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestSmoke(t *testing.T) {
	ws := t.TempDir()
	c, err := New(DefaultPolicy(Inputs{Workspace: ws, Home: os.Getenv("HOME"), Path: os.Getenv("PATH")}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	js, _ := json.MarshalIndent(c.Status(), "", " ")
	t.Log(string(js))
	for _, sh := range []string{"true", "cat /etc/passwd", "touch x; chmod 600 x; ls -l; touch -d @0 x; chmod 600 /etc/hosts; kill -0 $PPID; kill -9 $$", "ls /root/.ssh /root",
		"python3 -m http.server 8123 & sleep 1; curl -sS localhost:8123 ; curl -sS 127.0.0.1:22; curl -sS http://1.1.1.1; kill $!; wait",
		"node -e 'require(\"http\").createServer((q,s)=>{s.end(\"hi\\n\");process.exit}).listen(8124); setTimeout(()=>process.exit(),1500)' & sleep 1; curl -sS localhost:8124; curl -sS 127.0.0.1:8124;curl -sS http://[::1]:8124",
		"unshare -r true; mount -t tmpfs x /mnt; git init -q . && git status --short",
		"grep Cap /proc/self/status",
	} {
		cmd := exec.Command("sh", "-c", sh)
		cmd.Dir = ws
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		t0 := time.Now()
		d, err := c.Start(func() (int, error) {
			err := cmd.Start()
			if err != nil {
				return 0, err
			}
			return cmd.Process.Pid, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		err = cmd.Wait()
		t.Logf("%s: %v %v\n%s%+v", sh, err, time.Since(t0), out.String(), d.Refusals())
		select {
		case <-d.Done():
		case <-time.After(time.Second):
			t.Error("domain lives")
		}
	}
}
