package skillrepo

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func publishedURIs(t testing.TB, r *Repo) string {
	t.Helper()
	all, err := r.Published(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, p := range all {
		list = append(list, p.URI())
	}
	return strings.Join(list, " ")
}

func TestWhatIsPublished(t *testing.T) {
	big := strings.Repeat("x", maxPublishedFile+1)
	tests := []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"plain", map[string]string{"a/SKILL.md": md("a", "d")}, "skill://a/SKILL.md"},
		{"the name counts, not the directory", map[string]string{"dir/SKILL.md": md("pdf-2", "d")}, "skill://pdf-2/SKILL.md"},
		{"extra keys", map[string]string{"a/SKILL.md": "---\nname: a\ndescription: d\nhooks: {}\n---\n"}, "skill://a/SKILL.md"},
		{"skill.md", map[string]string{"a/skill.md": md("a", "d")}, ""},
		{"byte order mark", map[string]string{"a/SKILL.md": "\ufeff" + md("a", "d")}, ""},
		{"blank line first", map[string]string{"a/SKILL.md": "\n" + md("a", "d")}, ""},
		{"quote-retry", map[string]string{"a/SKILL.md": md("a", "Use when: asked")}, ""},
		{"not UTF-8", map[string]string{"a/SKILL.md": md("a", "d\xff")}, ""},
		{"duplicate keys", map[string]string{"a/SKILL.md": "---\nname: a\nname: a\ndescription: d\n---\n"}, ""},
		{"no name", map[string]string{"a/SKILL.md": "---\ndescription: d\n---\n"}, ""},
		{"a number for a name", map[string]string{"12/SKILL.md": md("12", "d")}, ""},
		{"capital", map[string]string{"A/SKILL.md": md("A", "d")}, ""},
		{"hyphens", map[string]string{"a/SKILL.md": md("a--b", "d"), "b/SKILL.md": md("-a", "d"), "c/SKILL.md": md("c-c", "d")}, "skill://c-c/SKILL.md"},
		{"64 characters", map[string]string{"a/SKILL.md": md(strings.Repeat("a", 64), "d"), "b/SKILL.md": md(strings.Repeat("b", 65), "d")}, "skill://" + strings.Repeat("a", 64) + "/SKILL.md"},
		{"long description", map[string]string{"a/SKILL.md": md("a", strings.Repeat("d", 1025))}, ""},
		{"too large", map[string]string{"a/SKILL.md": md("a", "d"), "a/x": big}, ""},
		{"nested", map[string]string{"dir/SKILL.md": md("a", "d"), "dir/sub dir/b/SKILL.md": md("b", "d"), "dir/sub dir/b/c/SKILL.md": md("c", "d")},
			"skill://a/SKILL.md skill://a/sub%20dir/b/SKILL.md skill://a/sub%20dir/b/c/SKILL.md"},
		{"nested under another name", map[string]string{"a/SKILL.md": md("a", "d"), "a/x/SKILL.md": md("b", "d"), "a/x/c/SKILL.md": md("c", "d")}, "skill://a/SKILL.md"},
		{"nested in an unpublished one", map[string]string{"a/SKILL.md": md("a", "d"), "a/x": big, "a/b/SKILL.md": md("b", "d")}, "skill://a/b/SKILL.md"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := realTempDir(t)
			write(t, dir, tt.files)
			if got := publishedURIs(t, open(t, wide(dir))); got != tt.want {
				t.Errorf("got %q; want %q", got, tt.want)
			}
		})
	}
}

func TestEntry(t *testing.T) {
	dir := realTempDir(t)
	write(t, dir, map[string]string{"a/SKILL.md": "---\nname: a\ndescription: d\nmetadata: {v: 014}\n---\n", "a/b c/ü.txt": "x", "a/n/n.md": ""})
	r := open(t, wide(dir))
	all, err := r.Published(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	e, err := all[0].Entry(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	j, err := json.Marshal(e)
	want := `{"uri":"skill://a/SKILL.md","frontmatter":{"name":"a","description":"d","metadata":{"v":14}},"resources":[` +
		`{"uri":"skill://a/SKILL.md","digest":"` + e.Resources[0].Digest + `","size":50},` +
		`{"uri":"skill://a/b%20c/%C3%BC.txt","digest":"sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881","size":1},` +
		`{"uri":"skill://a/n/n.md","digest":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","size":0}]}`
	if err != nil || string(j) != want {
		t.Errorf("got  %s\nwant %s", j, want)
	}
}

func TestLookup(t *testing.T) {
	dir := realTempDir(t)
	write(t, dir, map[string]string{
		"dir/SKILL.md": md("a", "d"), "dir/b c.md": "1", "dir/100%.md": "2", "dir/x%20y": "3", "dir/sub/b/SKILL.md": md("b", "d"), "dir/sub/b/f": "4",
		"dir/.git/c": "x", "dir/empty/": "", "dir/out": "-> /etc/passwd", "dir/q?x#y": "5", "dir/l": "-> sub", "other/skill.md": md("o", "d"),
	})
	r := open(t, wide(dir))
	tests := []struct{ uri, want string }{ // skill:file, or skill/dir
		{"skill://a/SKILL.md", "a:SKILL.md"}, {"skill://a/b%20c.md", "a:b c.md"}, {"skill://a/b c.md", "a:b c.md"},
		{"skill://a/100%.md", "a:100%.md"}, {"skill://a/100%25.md", "a:100%.md"}, {"skill://a/x%2520y", "a:x%20y"}, {"skill://a/x%20y", "a:x%20y"},
		{"skill://a/q?x#y", "a:q?x#y"}, {"skill://a/q%3Fx%23y", "a:q?x#y"}, {"skill://%61/SKILL.md", "a:SKILL.md"},
		{"skill://a/sub/b/SKILL.md", "b:SKILL.md"}, {"skill://a/sub/b/f", "b:f"}, {"skill://a", "a/"}, {"skill://a/sub", "a/sub"}, {"skill://a/sub/b", "b/"},
		{"skill://a/empty", "a/empty"},
	}
	for _, tt := range tests {
		got, err := r.Lookup(t.Context(), tt.uri)
		if err != nil {
			t.Errorf("%s: %v", tt.uri, err)
			continue
		}
		s := got.Name + "/" + got.Dir
		if got.File != nil {
			s = got.Name + ":" + got.File.Path
		}
		if s != tt.want || got.IsSkill() != strings.HasSuffix(s, ":SKILL.md") {
			t.Errorf("%s: %s; want %s", tt.uri, s, tt.want)
		}
	}
	for _, uri := range []string{
		"", "skill://", "skill://a/", "skill:///a", "skill://b/SKILL.md", "skill://dir/SKILL.md", "skill://a/none", "skill://a//SKILL.md", "skill://a/./SKILL.md",
		"skill://a/sub/../SKILL.md", "skill://a/sub/%2e%2e/SKILL.md", "skill://a/%2E%2E/a/SKILL.md", "skill://a/sub%2Fb", "skill://a/.git/c", "skill://a/.git", "skill://a/out",
		"skill://a/l", "skill://a/l/b/f", "skill://o/skill.md", "skill://o", "file://a/SKILL.md", "SKILL://a/SKILL.md", "skill://a/SKILL.md\x00", "skill://a/SKILL.md%00", "skill://A/SKILL.md",
	} {
		if got, err := r.Lookup(t.Context(), uri); !errors.Is(err, ErrUnknownURI) {
			t.Errorf("%q: %v, %v", uri, got, err)
		}
	}
}

func TestChildren(t *testing.T) {
	dir := realTempDir(t)
	write(t, dir, map[string]string{"a/SKILL.md": md("a", "d"), "a/z.bin": "12", "a/m/x.py": "", "a/m/n/o": "", "a/empty/": "", "a/.git/x": ""})
	r := open(t, wide(dir))
	tests := map[string]string{
		"skill://a": `[{"uri":"skill://a/SKILL.md","name":"SKILL.md","mimeType":"text/markdown","size":42},` +
			`{"uri":"skill://a/empty","name":"empty","mimeType":"inode/directory"},{"uri":"skill://a/m","name":"m","mimeType":"inode/directory"},` +
			`{"uri":"skill://a/z.bin","name":"z.bin","mimeType":"application/octet-stream","size":2}]`,
		"skill://a/m": `[{"uri":"skill://a/m/n","name":"n","mimeType":"inode/directory"},` +
			`{"uri":"skill://a/m/x.py","name":"x.py","mimeType":"text/x-python","size":0}]`,
		"skill://a/empty": `[]`,
	}
	for uri, want := range tests {
		target, err := r.Lookup(t.Context(), uri)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(target.Children()); err != nil || string(got) != want {
			t.Errorf("%s\ngot  %s\nwant %s", uri, got, want)
		}
	}
}

func TestMIMEType(t *testing.T) {
	for name, want := range map[string]string{"a.md": "text/markdown", "x/A.MD": "text/markdown", "LICENSE": "text/plain", "a.tar.gz": "application/gzip", "a.unknown": "application/octet-stream"} {
		if got := MIMEType(name); got != want {
			t.Errorf("%s: %s; want %s", name, got, want)
		}
	}
}

func FuzzDecodeURI(f *testing.F) {
	f.Add("skill://a/b%20c")
	f.Add("skill://a/%2e%2e/b")
	f.Fuzz(func(t *testing.T, uri string) {
		for _, p := range DecodeURI(uri) {
			for _, seg := range strings.Split(p, "/") {
				if seg == "" || seg == "." || seg == ".." {
					t.Errorf("%q may mean %q", uri, p)
				}
			}
			if back := DecodeURI(EncodeURI(p)); len(back) == 0 || back[0] != p {
				t.Errorf("%q is encoded as %q, which means %q", p, EncodeURI(p), back)
			}
		}
	})
}

func TestInventory(t *testing.T) {
	dir := realTempDir(t)
	write(t, dir, map[string]string{"a/SKILL.md": md("a", "d") + "\xff", "b/SKILL.md": md("B", "d"), "c/SKILL.md": "x", "a/out": "-> /etc/passwd"})
	root := wide(dir)
	root.Trusted = false
	inv, err := open(t, root).Inventory(t.Context())
	if err != nil || len(inv.Skills) != 2 {
		t.Fatal(inv, err)
	}
	j, _ := json.Marshal(inv)
	b, a := inv.Skills[0], inv.Skills[1]
	want := `{"skills":[{"name":"B","description":"d","dir":"` + filepath.Join(dir, "b") + `","root":"` + dir + `","trust":"discovered","digest":"` + b.Digest +
		`","files":1,"bytes":42,"published":false,"diagnostics":["Skill name 'B' must be lowercase","Directory name 'b' must match skill name 'B'"]},` +
		`{"name":"a","description":"d","dir":"` + filepath.Join(dir, "a") + `","root":"` + dir + `","trust":"discovered","digest":"` + a.Digest +
		`","files":1,"bytes":43,"published":true,"diagnostics":["the body of SKILL.md is not valid UTF-8","\"out\" is left out: leads outside the directory"]}],` +
		`"diagnostics":[{"path":"` + filepath.Join(dir, "c") + `","message":"SKILL.md has no frontmatter: the first line is not ---"}]}`
	if string(j) != want {
		t.Errorf("got  %s\nwant %s", j, want)
	}
}
