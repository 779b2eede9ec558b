package confine

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A Policy says what commands may reach on this machine. Paths are absolute host
// paths of files or directories, a directory standing for all below it. What does
// not exist is skipped; what is not named is refused.
type Policy struct {
	Read    []string // read and execute
	Write   []string // read, execute, write, make, rename, remove
	Devices []string // read and write devices, but make none
	Network bool     // all of the network; false: loopback servers of the session only
}

// Inputs are what the default policy follows from.
type Inputs struct {
	Workspace  string
	Home       string   // of the user who runs the server; may be empty
	Path       string   // the commands' PATH
	Private    []string // the session's own HOME and TMPDIR
	AllowRead  []string
	AllowWrite []string
	Network    bool
	// Resolve follows links, as filepath.EvalSymlinks does; nil: paths are as given.
	Resolve func(string) (string, error)
}

var systemRead = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/gnu/store", "/snap",
	"/run/current-system", "/run/systemd/resolve", "/proc",
	"/sys/devices/system/cpu", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage",
}

// etcRead are the files of /etc that programs need and that hold no secret:
// never passwd, shadow or keys.
var etcRead = []string{
	"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld.so.preload", "ld-musl-x86_64.path", "ld-musl-aarch64.path",
	"ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf", "pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf",
	"pki/ca-trust", "ca-certificates", "ca-certificates.conf", "crypto-policies",
	"alternatives", "localtime", "timezone", "locale.conf", "locale.alias", "default/locale",
	"hosts", "host.conf", "hostname", "resolv.conf", "nsswitch.conf", "gai.conf", "protocols", "services", "rpc", "ethertypes",
	"gitconfig", "gitattributes", "os-release", "debian_version", "lsb-release", "redhat-release", "fedora-release",
	"alpine-release", "arch-release", "system-release", "mime.types", "magic", "terminfo", "inputrc", "nanorc", "vim",
	"bash.bashrc", "bashrc", "bash_completion.d", "profile", "profile.d", "zsh", "zshrc", "zshenv", "shells",
	"fonts", "mtab", "xattr.conf", "papersize", "manpath.config",
	"python3", "python3.*", "perl", "java*", "maven", "gradle", "ImageMagick-6", "ImageMagick-7", "texmf", "php",
}

// homeRead are the configuration files under HOME that tools look for and that
// hold no secret.
var homeRead = []string{
	".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes",
	".bashrc", ".bash_profile", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".inputrc",
	".rustup", "go/pkg/mod", ".npm/_cacache", ".cargo/registry", ".cargo/git", ".cargo/config.toml", ".cargo/bin", ".cargo/env",
}

// defaultDevices are the devices that every program may expect.
var defaultDevices = []string{
	"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/ptmx",
}

// DefaultPolicy returns what commands need to work in a workspace and no more.
func DefaultPolicy(in Inputs) Policy {
	p := Policy{Devices: slices.Clone(defaultDevices), Network: in.Network}
	p.Read = slices.Clone(systemRead)
	for _, name := range etcRead {
		p.Read = append(p.Read, expand("/etc/"+name)...)
	}
	if in.Home != "" && in.Home != "/" {
		for _, name := range homeRead {
			p.Read = append(p.Read, filepath.Join(in.Home, name))
		}
	}
	p.Read = append(p.Read, toolchains(in)...)
	p.Read = append(p.Read, in.AllowRead...)
	p.Write = append(append([]string{in.Workspace, "/dev/shm"}, in.Private...), in.AllowWrite...)
	p.Read, p.Write = in.spellings(p.Read), in.spellings(p.Write)
	return p
}

// expand lists what a name with a wildcard stands for; a name without is itself.
func expand(pattern string) []string {
	if !strings.Contains(pattern, "*") {
		return []string{pattern}
	}
	found, _ := filepath.Glob(pattern) // the patterns are ours and well formed
	return found
}

// spellings adds the places that links lead to, and removes repetitions.
func (in Inputs) spellings(paths []string) []string {
	var out []string
	for _, p := range paths {
		if !filepath.IsAbs(p) {
			continue
		}
		p = filepath.Clean(p)
		out = append(out, p)
		if in.Resolve != nil {
			if real, err := in.Resolve(p); err == nil && real != p {
				out = append(out, real)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// toolchains returns the prefixes of the programs on PATH: the directory itself
// and, when it is the bin of an installation, the installation.
func toolchains(in Inputs) []string {
	var out []string
	for _, dir := range filepath.SplitList(in.Path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		dirs := []string{filepath.Clean(dir)}
		if in.Resolve != nil {
			if real, err := in.Resolve(dir); err == nil {
				dirs = append(dirs, real)
			}
		}
		for _, d := range dirs {
			out = append(out, prefixes(d, in.Home)...)
		}
	}
	return out
}

// narrow are installations whose directory also holds secrets (credentials of
// registries, key rings), with the parts that programs need.
var narrow = map[string][]string{
	".cargo": {"bin", "env"},
	".local": {"bin", "lib", "share/uv", "share/pipx", "share/mise", "share/fnm", "share/pnpm", "share/virtualenv"},
}

func prefixes(dir, home string) []string {
	parent := path.Dir(dir)
	if base := path.Base(dir); base != "bin" && base != "sbin" && base != "shims" {
		return one(dir, home)
	}
	if parts, ok := narrow[path.Base(parent)]; ok {
		out := []string{dir}
		for _, part := range parts {
			out = append(out, path.Join(parent, part))
		}
		return out
	}
	return append(one(dir, home), one(parent, home)...)
}

// one returns dir unless it would open far more than a toolchain: the root, HOME,
// or what either lies in.
func one(dir, home string) []string {
	if dir == "/" || home != "" && below(home, []string{dir}) {
		return nil
	}
	switch dir {
	case "/etc", "/var", "/home", "/root", "/run", "/tmp", "/dev", "/mnt", "/media", "/srv":
		return nil
	}
	return []string{dir}
}

// Allows reports whether commands may read (or with write, change) path, an
// absolute path with its links resolved.
func (p Policy) Allows(path string, write bool) bool {
	path = filepath.Clean(path)
	if below(path, p.Write) || below(path, p.Devices) {
		return true
	}
	return !write && below(path, p.Read)
}

// below reports whether path is one of the roots or lies under one.
func below(path string, roots []string) bool {
	for _, root := range roots {
		if path == root || root == "/" || strings.HasPrefix(path, root) && path[len(root)] == '/' {
			return true
		}
	}
	return false
}
