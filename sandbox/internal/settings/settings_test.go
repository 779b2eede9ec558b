package settings

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func nothing(string) string { return "" }

func TestCopies(t *testing.T) {
	copies := map[string]func(string) (string, []string){"npm": NPM, "pip": Pip, "go": GoEnv, "cargo": Cargo,
		"git": func(text string) (string, []string) {
			at := func(path string) string { return "/copies" + path }
			return Git(text, "/home/ann", at, at)
		}}
	for _, c := range []struct {
		tool, text, want, left string
	}{
		{"npm", "registry=https://npm.corp/\n@corp:registry=https://npm.corp/\n//npm.corp/:_authToken=s3cret\n_auth = s3cret\nemail=a@b.c\n",
			"registry=https://npm.corp/\n@corp:registry=https://npm.corp/\nemail=a@b.c\n", "//npm.corp/:_authToken _auth"},
		{"npm", "; token of the week: s3cret\nproxy=http://ann:s3cret@proxy:8080\nkeyfile=/k\ncafile=/ca\nfund=false", "cafile=/ca\nfund=false\n", "proxy keyfile"},
		{"pip", "[global]\nindex-url = https://ann:s3cret@pypi.corp/simple\nextra-index-url =\n    https://pypi.org/simple\n    https://s3cret@pypi.corp/simple\ntimeout: 5\n",
			"[global]\nextra-index-url =\n    https://pypi.org/simple\ntimeout: 5\n", "index-url extra-index-url"},
		{"go", "GOPRIVATE=corp.example\nGOAUTH=netrc\nGOPROXY=https://ann:s3cret@proxy.corp\nGOFLAGS=-mod=mod\n", "GOPRIVATE=corp.example\nGOFLAGS=-mod=mod\n", "GOAUTH GOPROXY"},
		{"cargo", "[registries.corp]\nindex = \"sparse+https://corp/\"\ntoken = \"s3cret\"\n[build]\njobs = 2\n", "[registries.corp]\nindex = \"sparse+https://corp/\"\n[build]\njobs = 2\n", "token"},
		{"cargo", "a = \"\"\"\nx\"\"\"\ntoken = \"\"\"\ns3cret\"\"\"\n", "", "everything"},
		{"git", "[user]\n\tname = Ann # the first\n[credential]\n\thelper = store\n[http \"https://corp\"]\n\textraHeader = \"AUTHORIZATION: bearer s3cret\"\n\tsslVerify\n",
			"[user]\n\tname = \"Ann\"\n[http \"https://corp\"]\n\tsslverify\n", "credential.helper http.https://corp.extraheader"},
		{"git", "[core] excludesFile = ~/.gitignore\n[url \"https://s3cret@corp/\"] insteadOf = https://corp/\n[url \"git@corp:\"]\ninsteadOf = corp\n[include] path = ~/more\n",
			"[core]\n\texcludesfile = \"/copies/home/ann/.gitignore\"\n[url \"git@corp:\"]\n\tinsteadof = \"corp\"\n[include]\n\tpath = \"/copies/home/ann/more\"\n", "url.https://s3cret@corp/.insteadof"},
		{"git", "[alias]\n\tl = \"log \\\"--x\\\"\" \\\n  -n\t5 \n[a", "[alias]\n\tl = \"log \\\"--x\\\"   -n\\t5\"\n", "what follows a line that git would refuse"},
	} {
		copied, left := copies[c.tool](c.text)
		if copied != c.want || strings.Join(left, " ") != c.left {
			t.Errorf("%s:\n%s\ngot:\n%s\nleft %q; want:\n%s\nleft %q", c.tool, c.text, copied, left, c.want, c.left)
		}
		if strings.Contains(copied, "s3cret") {
			t.Errorf("%s: the copy holds the secret:\n%s", c.tool, copied)
		}
	}
}

// TestGitReadsCopies: git understands a copy as it does the file, but for what was
// left out.
func TestGitReadsCopies(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	for _, text := range []string{
		"[user]\n\tname = Ann Lee\n\temail=ann@x\n[Core]\n\tPager = less -F ; comment\n[branch \"a\\\"b\\\\c\"]\n\tremote = o\n[alias]\n\tx = \"!f() { echo \\\"$1\\\"; }; f\"\n",
		"[a.B]\nc=d\n[x] y\n[x \"Y z\"] w = 1 \\\n 2  \n\tq = \"  s  \"  \n\tempty =\n",
	} {
		copied, left := Git(text, "/h", nothing, nothing)
		if len(left) > 0 {
			t.Errorf("left out: %q", left)
		}
		if want, got := listed(t, text), listed(t, copied); want != got {
			t.Errorf("git reads the file as\n%s\nand the copy\n%s\nas\n%s", want, copied, got)
		}
	}
}

func listed(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("git", "config", "--file", file, "--null", "--list").CombinedOutput()
	if err != nil {
		t.Fatalf("%v %s", err, out)
	}
	return string(out)
}

func TestCollect(t *testing.T) {
	files := map[string]string{
		"/home/ann/.npmrc":             "registry=https://npm.corp/\n_authToken=s3cret\n",
		"/home/ann/.pip/pip.conf":      "[global]\nindex-url=https://pypi.corp/simple\n",
		"/home/ann/.config/git/ignore": "*.swp\n",
		"/home/ann/.config/git/config": "[user]\nname = Ann\n",
		"/home/ann/.gitconfig":         "[include]\npath = work/gitconfig\n[include]\npath = /etc/shadow\n[includeIf \"gitdir:~/oss/\"]\npath = ~/oss.gitconfig\n",
		"/home/ann/work/gitconfig":     "[user]\nemail = ann@corp\n[credential]\nhelper = s3cret\n[include]\npath = gitconfig\n",
		"/home/ann/oss.gitconfig":      "[user]\nemail = ann@oss\n",
	}
	asked := []string{}
	got := Collect("/home/ann", "/copies", func(path string) string { asked = append(asked, path); return files[path] })
	byName := map[string]File{}
	for _, f := range got.Files {
		byName[f.Name] = f
		if strings.Contains(f.Text, "s3cret") {
			t.Errorf("%s holds a secret", f.Name)
		}
	}
	main := byName[".gitconfig"].Text
	if byName[".npmrc"].Text == "" || byName[".pip/pip.conf"].Text == "" || byName[".gitconfig.d/1"].Text != "*.swp\n" {
		t.Errorf("files: %+v", got.Files)
	}
	if !strings.Contains(main, "Ann") || !strings.Contains(main, `excludesfile = "/copies/.gitconfig.d/1"`) || !strings.Contains(main, `[includeif "gitdir:~/oss/"]`) {
		t.Errorf("git's: %s", main)
	}
	if slices.Contains(asked, "/etc/shadow") {
		t.Error("a file outside of the home directory was read")
	}
	if len(got.Files) > maxIncludes+4 {
		t.Errorf("a file that includes itself makes %d files", len(got.Files))
	}
	if want := "~/.npmrc: _authToken"; !slices.Contains(got.Left, want) {
		t.Errorf("left: %q, without %q", got.Left, want)
	}
}

// FuzzCopies plants a secret in each kind of file; no copy may hold it.
func FuzzCopies(f *testing.F) {
	f.Add("[user]\nname = x\n", "[a \"b\"]")
	f.Add("registry=x\n  more\n", "")
	f.Add("a = \\", "\"")
	f.Fuzz(func(t *testing.T, before, after string) {
		const planted = "pl4nted"
		if strings.Contains(before+after, planted) {
			t.Skip()
		}
		for line, copyOf := range map[string]func(string) (string, []string){
			"\n_authToken=%s\n": NPM, "\npassword = %s\n": Pip, "\nGOPROXY=https://u:%s@h\n": GoEnv,
		} {
			if copied, _ := copyOf(before + fmt.Sprintf(line, planted) + after); strings.Contains(copied, planted) {
				t.Errorf("%q survives in %q", fmt.Sprintf(line, planted), copied)
			}
		}
		if strings.Contains(before, `\`) {
			return // which may make another setting of it
		}
		text := before + "\n[credential]\nhelper = " + planted + "\n" + after
		if copied, _ := Git(text, "", nothing, nothing); strings.Contains(copied, planted) {
			t.Errorf("it survives in %q", copied)
		}
	})
}
