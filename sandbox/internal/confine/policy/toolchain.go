package policy

import (
	"path"
	"slices"
	"strings"
)

// A toolchain is the directory of an installation that is known, with the parts
// of it that programs need. Credentials, settings and dotfiles are none of them.
type toolchain struct {
	names []string // of the directory, or the end of its path; without a leading dot
	parts []string
}

// toolchains are known by the name of their directory.
var toolchains = []toolchain{
	{[]string{"pyenv", "rbenv", "nodenv", "goenv", "jenv"}, []string{"bin", "shims", "versions", "libexec", "plugins", "pyenv.d", "rbenv.d", "completions", "version"}},
	{[]string{"nvm"}, []string{"versions", "alias", "nvm.sh", "nvm-exec"}},
	{[]string{"volta"}, []string{"bin", "tools", "layout.v3", "layout.v4"}},
	{[]string{"asdf"}, []string{"bin", "shims", "installs", "plugins", "lib", "libexec", "asdf.sh"}},
	{[]string{"share/mise"}, []string{"shims", "installs", "plugins"}},
	{[]string{"bun"}, []string{"bin", "install"}},
	{[]string{"deno"}, []string{"bin"}},
	{[]string{"share/uv"}, []string{"tools", "python"}},
	{[]string{"share/pipx", "pipx"}, []string{"venvs", "shared", "py"}},
	{[]string{"share/fnm", "fnm"}, []string{"node-versions", "aliases"}},
	{[]string{"share/pnpm"}, []string{"global", "store", "nodejs"}},
	{[]string{"go"}, []string{"bin", "pkg/mod"}},
	{[]string{"cargo"}, []string{"bin", "env", "registry", "git"}},
	{[]string{"rustup"}, []string{"toolchains", "settings.toml", "update-hashes"}},
	{[]string{"sdkman"}, []string{"bin", "src", "libexec", "candidates"}},
	{[]string{"dotnet"}, []string{"dotnet", "sdk", "shared", "host", "packs", "tools", "templates", "sdk-manifests", "library-packs", "store"}},
	{[]string{"linuxbrew"}, []string{"bin", "sbin", "Cellar", "opt", "lib", "libexec", "include", "share", "Frameworks", "Homebrew/Library", "etc/openssl@3", "etc/ca-certificates"}},
	{[]string{"local"}, []string{"bin", "lib", "share/uv/tools", "share/uv/python", "share/pipx/venvs", "share/pipx/shared", "share/pipx/py",
		"share/mise/shims", "share/mise/installs", "share/mise/plugins", "share/fnm/node-versions", "share/fnm/aliases", "share/pnpm/global", "share/pnpm/store", "share/virtualenv"}},
}

// A mark is a file by which an installation is known that may have any name.
type mark struct {
	file  string
	parts []string
}

var marks = []mark{
	{"pyvenv.cfg", []string{"pyvenv.cfg", "bin", "lib", "lib64", "include", "share"}},
	{"conda-meta", []string{"conda-meta", "bin", "lib", "libexec", "include", "share", "ssl", "condabin"}},
	{"lib/node_modules/npm/package.json", []string{"bin", "lib", "include", "share"}},
	{"src/runtime/runtime.go", []string{"VERSION", "go.env", "bin", "src", "pkg", "lib", "api", "misc"}},
	{"lib/jvm.cfg", []string{"bin", "lib", "conf", "jmods", "include", "release"}},
	{"lib/rustlib", []string{"bin", "lib", "libexec", "share"}},
}

// installation returns the known one that holds dir, and its parts.
func installation(dir string) (prefix string, parts []string) {
	for prefix = dir; prefix != "/"; prefix = path.Dir(prefix) {
		for _, t := range toolchains {
			if slices.ContainsFunc(t.names, func(name string) bool { return isCalled(prefix, name) }) {
				return prefix, t.parts
			}
		}
	}
	return "", nil
}

// isCalled reports whether the path ends in name, also with a dot before its last element.
func isCalled(p, name string) bool {
	dir, base := path.Split(p)
	p = dir + strings.TrimPrefix(base, ".")
	return strings.HasSuffix(p, "/"+name)
}

// isBin reports whether a directory of that name holds programs and nothing else.
func isBin(dir string) bool { return slices.Contains(binNames, path.Base(dir)) }

var binNames = []string{"bin", "sbin", "shims", "condabin"}

// vast are directories that are far more than a toolchain.
var vast = []string{"/", "/etc", "/var", "/var/lib", "/home", "/root", "/run", "/tmp", "/var/tmp", "/dev", "/mnt", "/media", "/srv", "/sys"}
