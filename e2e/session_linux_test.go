package e2e

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "record the terminal session of README again instead of comparing")

// The recording and the picture that is made of it.
const (
	recordingCast = "../docs/images/session.cast"
	recordingSVG  = "../docs/images/session.svg"
)

// shownHome stands in the recording for the directory in which it was made.
const shownHome = "/home/me"

// recorded are the lines that somebody types in the recording; a # is a remark.
var recorded = []string{
	"# Your shell: there is a project, and a key that is nobody's business.",
	"ls . ~/.ssh",
	"# What an agent gets. It works here ...",
	"export PERSTACK_BASE_TOOLS=baseagent",
	"perstack-base call shell_command 'wc -l main.go; echo done > notes.txt'",
	"perstack-base call grep_files 'func main' output_mode=content",
	"# ... and not there: not by a file tool, not by a command, not over the network.",
	"perstack-base call read_file ../.ssh/id_ed25519",
	"perstack-base call shell_command 'cat /home/me/.ssh/id_ed25519'",
	"perstack-base call shell_command 'curl -sS https://example.com'",
	"# Nothing outlives its call, daemons included.",
	"perstack-base call shell_command 'setsid sleep 1234567 & echo started'",
	"pgrep -f 'sleep 123456[7]' || echo none is left",
}

// TestRecordedSession: the terminal session that README shows is what the program does. The files of the recording
// are compared, or written with -update, when commands are confined by namespaces, as most users have them.
func TestRecordedSession(t *testing.T) {
	for _, program := range []string{"curl", "pgrep"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("the recording needs ", program)
		}
	}
	home := workspace(t)
	project := filepath.Join(home, "project")
	for path, text := range map[string]string{".ssh/id_ed25519": "a key\n", "project/main.go": "package main\n\nfunc main() {\n\tprintln(\"hello\")\n}\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(home, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	doctor := exec.Command(binary, "doctor")
	doctor.Dir = project
	if out, err := doctor.CombinedOutput(); err != nil || !strings.Contains(string(out), "confined: namespaces") {
		t.Skipf("the recording is made in namespaces; here (%v): %.300s", err, out)
	}
	var cast recording
	for _, line := range recorded {
		cast.typed(line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		cmd := exec.Command("bash", "-c", strings.ReplaceAll(line, shownHome, home))
		cmd.Dir = project
		cmd.Env = append(os.Environ(), "HOME="+home, "PERSTACK_BASE_TOOLS=baseagent", "LC_ALL=C",
			"PATH="+filepath.Dir(binary)+string(os.PathListSeparator)+os.Getenv("PATH"))
		out, _ := cmd.CombinedOutput() // commands that are refused fail
		cast.printed(strings.ReplaceAll(string(out), home, shownHome))
	}
	compareOrWrite(t, recordingCast, cast.file())
	compareOrWrite(t, recordingSVG, cast.svg())
}

func compareOrWrite(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is stale (%v): run go test ./e2e -run TestRecordedSession -update and look at it. It would be\n%s", path, err, want)
	}
}

// Measures of the terminal, and how fast somebody types, in seconds.
const (
	columns, lineHeight, charWidth = 108, 19, 8.2
	perKey, pause                  = 0.02, 0.9
)

// A recording is an asciicast: what a terminal shows, and when.
type recording struct {
	now    float64
	events []event
}

type event struct {
	at   float64
	text string
}

// typed shows a prompt and a line, key by key.
func (r *recording) typed(line string) {
	r.add(pause, "$ ")
	for _, key := range line {
		r.add(perKey, string(key))
	}
	r.add(perKey, "\r\n")
}

// printed shows what a command answered.
func (r *recording) printed(text string) {
	for line := range strings.Lines(text) {
		r.add(perKey, strings.TrimRight(line, "\n")+"\r\n")
	}
}

func (r *recording) add(after float64, text string) {
	r.now += after
	r.events = append(r.events, event{r.now, text})
}

// rows are the lines of the terminal in the end, each with the time at which it begins and is complete.
func (r *recording) rows() (rows []row) {
	var line strings.Builder
	began := -1.0
	for _, e := range r.events {
		if began < 0 {
			began = e.at
		}
		text, ended := strings.CutSuffix(e.text, "\r\n")
		line.WriteString(text)
		if ended {
			rows = append(rows, wrapped(line.String(), began)...)
			line.Reset()
			began = -1
		}
	}
	return rows
}

type row struct {
	text, class string
	at          float64
}

// wrapped breaks a line as a terminal does.
func wrapped(line string, at float64) (rows []row) {
	class := "t"
	switch {
	case strings.HasPrefix(line, "$ #"):
		class, line = "t c", line[len("$ "):]
	case strings.HasPrefix(line, "$ "):
		class = "t k"
	case strings.HasPrefix(line, "blocked by the sandbox") || strings.HasPrefix(line, "Error:"):
		class = "t n"
	}
	runes := []rune(line)
	for len(runes) > columns {
		rows = append(rows, row{string(runes[:columns]), class, at})
		runes = runes[columns:]
	}
	return append(rows, row{string(runes), class, at})
}

// file is the recording as an asciicast of version 2.
func (r *recording) file() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"version": 2, "width": %d, "height": %d, "title": "perstack-base"}`+"\n", columns, len(r.rows())+1)
	for _, e := range r.events {
		text, _ := json.Marshal(e.text)
		fmt.Fprintf(&b, "[%.2f, \"o\", %s]\n", e.at, text)
	}
	return b.Bytes()
}

// svg is a picture of the terminal whose lines appear as they did; it stands still for who wants less motion.
func (r *recording) svg() []byte {
	rows := r.rows()
	const margin, bar = 16.0, 30.0
	width, height := columns*charWidth+2*margin, float64(len(rows)*lineHeight)+2*margin+bar
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" role="img" aria-label="A terminal session with perstack-base">
<style>
  .t { font: 13.6px ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; fill: #d5dbe3; white-space: pre; animation: show .01s both; }
  .c { fill: #7d8794; } .k { fill: #7ee2a0; } .n { fill: #ffb86b; }
  @keyframes show { from { opacity: 0 } to { opacity: 1 } }
  @media (prefers-reduced-motion: reduce) { .t { animation: none } }
</style>
<rect width="100%%" height="100%%" rx="10" fill="#14181f" stroke="#39424e"/>
<circle cx="20" cy="17" r="5" fill="#4a5462"/><circle cx="37" cy="17" r="5" fill="#4a5462"/><circle cx="54" cy="17" r="5" fill="#4a5462"/>
`, width, height)
	for i, row := range rows {
		y := bar + margin + float64(i*lineHeight) + 8
		fmt.Fprintf(&b, `<text class="%s" x="%.0f" y="%.0f" xml:space="preserve" style="animation-delay:%.1fs">%s</text>`+"\n", row.class, margin, y, row.at, html.EscapeString(row.text))
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}
