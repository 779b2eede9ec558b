package e2e

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// sourceTree makes files of about 10 KB, a hundred to a directory.
func sourceTree(t testing.TB, dir string, files int) {
	t.Helper()
	for i := range files {
		sub := filepath.Join(dir, fmt.Sprintf("pkg%02d/sub%03d", i/1000, i/100))
		if i%100 == 0 {
			if err := os.MkdirAll(sub, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		text := strings.Repeat(fmt.Sprintf("func handler%d(w http.ResponseWriter, r *http.Request) { return errors.New(\"no such file\") }\n", i), 100)
		if i%97 == 0 {
			text += "const needle = 42\n"
		}
		if err := os.WriteFile(filepath.Join(sub, fmt.Sprintf("file%05d.go", i)), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkSearch measures grep_files and list_dir through the binary. Floors:
// ripgrep with its process, and a walk that does nothing.
func BenchmarkSearch(b *testing.B) {
	for _, files := range []int{100, 1000, 10000} {
		dir := workspace(b)
		sourceTree(b, dir, files)
		for _, c := range []struct{ name, tool, args string }{
			{"literal", "grep_files", `{"pattern":"needle"}`},
			{"regexp", "grep_files", `{"pattern":"handler[0-9]*7\\(.*(such|much) \\w+$"}`},
			{"count", "grep_files", `{"pattern":"errors","output_mode":"count"}`},
			{"list_dir", "list_dir", `{"dir_path":".","depth":5,"offset":50}`},
		} {
			b.Run(fmt.Sprintf("%s/files=%d", c.name, files), func(b *testing.B) { benchCall(b, dir, c.tool, c.args) })
		}
		b.Run(fmt.Sprintf("floor=rg-literal/files=%d", files), func(b *testing.B) {
			if _, err := exec.LookPath("rg"); err != nil {
				b.Skip("needs rg")
			}
			for b.Loop() {
				if err := exec.Command("rg", "--no-require-git", "-l", "--sortr=modified", "needle", dir).Run(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("floor=walk/files=%d", files), func(b *testing.B) {
			for b.Loop() {
				if err := filepath.WalkDir(dir, func(string, fs.DirEntry, error) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPatch measures 200 hunks on files of 50 KB, 500 KB and 5 MB; each
// patch undoes the one before. The floor is a read and a write of the file.
func BenchmarkPatch(b *testing.B) {
	for _, lines := range []int{1000, 10000, 100000} {
		dir := workspace(b)
		var text strings.Builder
		for i := range lines {
			fmt.Fprintf(&text, "line %06d of a file, with some words that vary %d\n", i, i%7)
		}
		there, back := bigPatch(lines, "line", "LINE"), bigPatch(lines, "LINE", "line")
		b.Run(fmt.Sprintf("lines=%d", lines), func(b *testing.B) {
			if err := os.WriteFile(filepath.Join(dir, "f.txt"), []byte(text.String()), 0o666); err != nil {
				b.Fatal(err)
			}
			benchCall(b, dir, "apply_patch", there, back)
		})
		b.Run(fmt.Sprintf("floor=copy/lines=%d", lines), func(b *testing.B) {
			for b.Loop() {
				data, err := os.ReadFile(filepath.Join(dir, "f.txt"))
				if err == nil {
					err = os.WriteFile(filepath.Join(dir, "copy"), data, 0o666)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func bigPatch(lines int, from, to string) string {
	var patch strings.Builder
	patch.WriteString("*** Begin Patch\n*** Update File: f.txt\n")
	for i := range 200 {
		n := i*(lines/200) + 2
		line := func(op, word string, n int) {
			fmt.Fprintf(&patch, "%s%s %06d of a file, with some words that vary %d\n", op, word, n, n%7)
		}
		patch.WriteString("@@\n")
		line(" ", "line", n-1)
		line("-", from, n)
		line("+", to, n)
		line(" ", "line", n+1)
	}
	patch.WriteString("*** End Patch")
	args, _ := json.Marshal(map[string]string{"patch": patch.String()})
	return string(args)
}

// benchCall sends one call after another to a server of its own, in turn.
func benchCall(b *testing.B, dir, tool string, args ...string) {
	c := start(b, dir, "serve", "--tools", "baseagent")
	c.initialize()
	for i := 0; b.Loop(); i++ {
		result, err := c.call(tool, json.RawMessage(args[i%len(args)]))
		if err != nil || result.IsError {
			b.Fatal(result, err)
		}
	}
	b.ReportMetric(float64(peakKB(b, c.cmd.Process.Pid))/1024, "peak-MB")
}
