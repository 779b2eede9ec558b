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
			"[core]\n\texcludesfile = \"/copies/home/ann/.gitignore\"\n[url \"git@corp:\"]\n\tinsteadof = \"corp\"\n[include]\n\tpath = \"/copies/home/ann/more\"\n", "url.....insteadof"},
		{"git", "[alias]\n\tl = \"log \\\"--x\\\"\" \\\n  -n\t5 \n[a", "[alias]\n\tl = \"log \\\"--x\\\"   -n\\t5\"\n", "what follows a line that git would refuse"},
		{"npm", "registry=https://npm.corp/\n  //registry.npmjs.org/:_authToken=s3cret\n  apikey=s3cret\n  s3cret\n", "registry=https://npm.corp/\n", "//registry.npmjs.org/:_authToken apikey a setting whose name may be secret"},
		{"npm", "proxy=ann:s3cret@host:3128\nhttps-proxy=http://ann:it's/s3cret@host\nnoproxy=\"u:s3cret\\u0040h\"\nfund=false ; s3cret\nsave-exact=true\nca[]=\"-----BEGIN\\nx\"\n[s3cret]\nregistry=s3cret\n",
			"fund=false\nsave-exact=true\nca[]=\"-----BEGIN\\nx\"\n", "proxy https-proxy noproxy what follows the header of a section"},
		{"pip", "[global]\n  proxy = ann:s3cret@host:3128\n  password = s3cret\n  retries = 1\n  cert = /ca\nindex-url = https://ann:s'3/s3cret@pypi.corp/simple\nno_index = true\n[distutils]\nfind-links = s3cret\n",
			"[global]\nretries = 1\ncert = /ca\nno_index = true\n", "proxy password index-url find-links"},
		{"go", "GOFLAGS=-mod=mod\nGOOGLE_KEY=s3cret\nCGO_CFLAGS=-O2\nPGPASSWORD=s3cret\nCC=clang\n", "GOFLAGS=-mod=mod\nCGO_CFLAGS=-O2\nCC=clang\n", "GOOGLE_KEY PGPASSWORD"},
		{"cargo", "[env.GITHUB_TOKEN]\nvalue = \"s3cret\"\n[ env ]\nPGPASSWORD = \"s3cret\"\nMYSQL_PWD = \"s3cret\"\nNPM_APIKEY = \"s3cret\"\n[term]\nquiet = true\n", "[term]\nquiet = true\n", "[env.GITHUB_TOKEN] value [ env ] PGPASSWORD MYSQL_PWD NPM_APIKEY"},
		{"cargo", "env.MYSQL_PWD = \"s3cret\"\nenv = { A = \"s3cret\" }\n\"e\\u006ev\".A = \"s3cret\"\nnet.retry = 1\n# [env]\n# A = \"s3cret\"\n# jobs\n[http]\nproxy = \"ann:s3cret@host:3128\"\ntimeout = 5\n[registries.x]\n\"to\\u006ben\" = \"s3cret\"\n",
			"net.retry = 1\n# jobs\n[http]\ntimeout = 5\n[registries.x]\n", "env.MYSQL_PWD env \"e\\u006ev\".A proxy \"to\\u006ben\""},
		{"cargo", "[registry]\ncredential-provider = [\n  \"x\", # ]\n  \"s3cret\",\n]\n[build]\nrustflags = [\n  \"-C\",\n]\n[source.git]\ngit = \"ssh://git@corp/x\"\n", "[registry]\n[build]\nrustflags = [\n  \"-C\",\n]\n[source.git]\ngit = \"ssh://git@corp/x\"\n", "credential-provider"},
		{"git", "[gitlab]\nprivateToken = s3cret\n[hub]\noauthtoken = s3cret\n[github]\naccessToken = s3cret\n[sendemail]\nsmtpPassword = s3cret\n[http]\nproxy = ann:s3cret@host:3128\ncookieFile = s3cret\n[core]\nsshCommand = sshpass -p s3cret ssh\n[user]\npat = s3cret\n",
			"", "gitlab.privatetoken hub.oauthtoken github.accesstoken sendemail.smtppassword http.proxy http.cookiefile core.sshcommand user.pat"},
		{"git", "[alias]\na = \"!curl -H 'Authorization: Bearer s3cret'\"\nb = !sshpass -p s3cret ssh\nc = log @{u}\n[url \"ssh://git@corp/\"]\ninsteadOf = git@corp:\n[includeIf \"hasconfig:remote.*.url:git@corp:*/**\"]\npath = /x\n",
			"[alias]\n\tc = \"log @{u}\"\n[url \"ssh://git@corp/\"]\n\tinsteadof = \"git@corp:\"\n[includeif \"hasconfig:remote.*.url:git@corp:*/**\"]\n\tpath = \"/copies/x\"\n", "alias.a alias.b"},
		{"git", "[alias]\n\tmr = \"!curl -u me:s3cret https://x\"\n\tst = status -sb\n[filter \"openssl\"]\n\tclean = openssl enc -k s3cret\n[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\tprocess = git-lfs filter-process\n[core]\n\teditor = code --wait\n[sequence]\n\teditor = env K=s3cret vim\n[lfs]\n\turl = https://lfs/?sig=s3cret\n[http]\n\tproxy = socks5h://s3cret@proxy\n",
			"[alias]\n\tst = \"status -sb\"\n[filter \"lfs\"]\n\tclean = \"git-lfs clean -- %f\"\n[filter \"lfs\"]\n\tprocess = \"git-lfs filter-process\"\n[core]\n\teditor = \"code --wait\"\n", "alias.mr filter.openssl.clean sequence.editor lfs.url http.proxy"},
		{"npm", "registry=https://dl.corp/a1s3cretB2c3D4e5F6/org/\n@a:registry=https://npm.corp/artifactory/api/npm/npm-virtual-2024/\nmessage=npm_s3cretAAAAAAAAAAAAAAAAAAAAAA\n", "@a:registry=https://npm.corp/artifactory/api/npm/npm-virtual-2024/\n", "registry message"},
		{"pip", "[global]\nfind-links = https://acct.blob/w?sv=2020&sig=s3cret\nindex-url = https://pypi.org/simple\n", "[global]\nindex-url = https://pypi.org/simple\n", "find-links"},
		{"go", "GOFLAGS=-ldflags=-X=main.key=ghp_s3cretAAAAAAAAAAAAAAAA\nGOPROXY=https://proxy.golang.org,direct\n", "GOPROXY=https://proxy.golang.org,direct\n", "GOFLAGS"},
	} {
		copied, left := copies[c.tool](c.text)
		if copied != c.want || strings.Join(left, " ") != c.left {
			t.Errorf("%s:\n%s\ngot:\n%s\nleft %q; want:\n%s\nleft %q", c.tool, c.text, copied, left, c.want, c.left)
		}
		if strings.Contains(copied+strings.Join(left, " "), "s3cret") {
			t.Errorf("%s: the copy or the names hold the secret:\n%s\n%q", c.tool, copied, left)
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
		"[user]\n\tname = Ann Lee\n\temail=ann@x\n[Core]\n\tPager = less -F ; comment\n[branch \"a\\\"b\\\\c\"]\n\tremote = o\n[alias]\n\tx = \"log --grep=\\\"$1\\\"; f\"\n",
		"[branch.B]\nc=d\n[core] y\n[branch \"Y z\"] w = 1 \\\n 2  \n\tq = \"  s  \"  \n\tempty =\n",
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
			"\n_authToken=%s\n": NPM, "\n  //h/:_authToken=%s\n": NPM, "\n apikey=%s\n": NPM, "\n proxy = u:%s@h:1\n": NPM,
			"\npassword = %s\n": Pip, "\nproxy = u:%s@h:1\n": Pip, "\nindex-url = http://u:'/%s@h\n": Pip,
			"\nGOPROXY=https://u:%s@h\n": GoEnv, "\n GOAUTH=%s\n": GoEnv, "\nMYSQL_PWD=%s\n": GoEnv,
			"\n[env.X]\nvalue = \"%s\"\n": Cargo, "\n[env]\nMYSQL_PWD = '%s'\n": Cargo, "\n[http]\nproxy = \"u:%s@h:1\"\n": Cargo,
		} {
			if copied, left := copyOf(before + fmt.Sprintf(line, planted) + after); strings.Contains(copied+strings.Join(left, " "), planted) {
				t.Errorf("%q survives in %q, left %q", fmt.Sprintf(line, planted), copied, left)
			}
		}
		if strings.Contains(before, `\`) {
			return // which may make another setting of it
		}
		for _, line := range []string{"[credential]\nhelper = %s", "[hub]\noauthtoken = %s", "[http]\nproxy = u:%s@h:1", "[core]\nsshCommand = sshpass -p %s ssh"} {
			text := before + "\n" + fmt.Sprintf(line, planted) + "\n" + after
			if copied, left := Git(text, "", nothing, nothing); strings.Contains(copied+strings.Join(left, " "), planted) {
				t.Errorf("it survives in %q, left %q", copied, left)
			}
		}
	})
}
