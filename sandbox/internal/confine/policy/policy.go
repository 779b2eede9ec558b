package policy

import (
	"path/filepath"
	"slices"
	"strings"
)

// SharedMemory is a directory of the machine's in which every user's programs make files.
const SharedMemory = "/dev/shm"

// A Policy says what commands may reach on this machine. Paths are absolute host
// paths of files or directories, a directory standing for all below it. What does
// not exist is skipped; what is not named is refused.
//
// A policy names; [Policy.Pin] looks the names up, once, and from then on it
// means what was found then.
type Policy struct {
	Read    []string // read and execute
	Write   []string // read, execute, write, make, rename, remove
	Devices []string // read and write devices, but make none
	Network bool     // all of the network; false: loopback servers of the session only

	// Asked are the paths in Read that the user named. Nothing else in Read may
	// hold what people keep secret in Home.
	Asked []string
	Home  string
	// Bins are directories of PATH. Not all that lies in or beside one is a
	// program: Pin finds out what is.
	Bins []string

	Reasons map[string]string // why a path may be reached

	// Repository is the git directory outside the workspace, "" for none: of no use
	// is a flag that would open it to commands whole.
	Repository string
	Places     []Place // what the names led to; nil before Pin
	Dropped    []Place // what is not granted, with the reason

	roots  []FileID // the writable places
	short  error    // see Short
	homes  []string // the spellings of Home
	hidden []string // the secrets in these
	met    *met     // by the walks of Pin
}

// A Place is what one path of a policy led to.
type Place struct {
	Path   string            // as named
	Real   string            // where it was found, links resolved
	Write  bool              `json:",omitempty"` // may be written, too
	Kind   Kind              `json:",omitempty"` // what may be written
	Reason string            `json:",omitempty"` // why it may be reached, or why not
	Links  map[string]string `json:",omitempty"` // the links on the way, with their targets
	ID     FileID            // the object itself
	From   string            `json:",omitempty"` // where the object is now

	Covered bool        `json:",omitempty"` // by another place: adds nothing
	Fd      *descriptor `json:"-"`          // open until Close
}

// A Kind says what commands may make in a writable place.
type Kind int

// The kinds. In places of git's no link, socket or FIFO can be made, nor anything
// moved in from elsewhere: outside of the sandbox git would follow it.
const (
	Everything Kind = iota
	GitData         // files and directories
	GitObjects      // the same, but only where git keeps objects: not in info, which leads to other repositories
)

// Inputs are what the default policy follows from.
type Inputs struct {
	Workspace  string
	Home       string // of the user who runs the server; may be empty
	Path       string // the commands' PATH
	AllowRead  []string
	AllowWrite []string
	Network    bool
	Users      bool // the real /etc/passwd and /etc/group can be read
}

// A group of paths that can be read for one reason.
type Group struct {
	Reason string
	paths  []string
}

// system is what the operating system is made of.
var System = []Group{
	{"programs and libraries of the system", []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/gnu/store", "/snap", "/run/current-system"}},
	{"names of hosts", []string{"/run/systemd/resolve"}},
	{"processes and the machine's size", []string{"/proc", "/sys/devices/system/cpu", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage"}},
	{"installed packages", []string{"/var/lib/dpkg", "/var/lib/apt/lists", "/var/lib/apt/extended_states", "/var/cache/apt"}},
}

// etc are the files of /etc that programs need and that hold no secret: never
// shadow, keys or passwords.
var Etc = Group{"settings of the system that hold no secret", []string{
	"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld.so.preload", "ld-musl-x86_64.path", "ld-musl-aarch64.path",
	"ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf", "pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf",
	"pki/ca-trust", "ca-certificates", "ca-certificates.conf", "crypto-policies",
	"alternatives", "localtime", "timezone", "locale.conf", "locale.alias", "default/locale",
	"hosts", "host.conf", "hostname", "resolv.conf", "nsswitch.conf", "gai.conf", "protocols", "services", "rpc", "ethertypes",
	"gitconfig", "gitattributes", "os-release", "debian_version", "lsb-release", "redhat-release", "fedora-release",
	"alpine-release", "arch-release", "system-release", "machine-id", "mime.types", "magic", "terminfo", "inputrc", "nanorc", "vim",
	"bash.bashrc", "bashrc", "bash_completion.d", "profile", "profile.d", "zsh", "zshrc", "zshenv", "shells",
	"fonts", "mtab", "xattr.conf", "papersize", "manpath.config", "opt", "dpkg", "chromium", "chromium.d", "chromium-browser",
	"apt/sources.list", "apt/sources.list.d", "apt/preferences.d", "apt/trusted.gpg.d", "gdb",
	"python3", "python3.*", "perl", "java*", "maven", "gradle", "ImageMagick-6", "ImageMagick-7", "texmf", "php",
}}

// users are the names of users and groups.
var Users = Group{"names of users and groups", []string{"passwd", "group"}}

// home are files and directories of HOME that tools look for and that hold no secret.
var home = []Group{
	{"packages downloaded before", []string{"go/pkg/mod", ".npm/_cacache", ".cache/yarn/v6", ".yarn/berry/cache", ".cache/pnpm", ".local/share/pnpm/store", ".cargo/registry", ".cargo/git"}},
	{"packages of pip install --user", []string{".local/lib/python3*/site-packages"}},
	{"Rust's toolchains", []string{".rustup/toolchains", ".rustup/settings.toml", ".rustup/update-hashes"}},
}

// secrets are the parts of HOME where people keep keys, tokens and passwords. No
// path of a policy may hold one or lie in one, unless the user asked for it.
var secrets = []string{
	".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config", ".netrc", ".npmrc", ".yarnrc.yml", ".pypirc", ".git-credentials", ".gitconfig", ".pgpass", ".my.cnf",
	".bashrc", ".bash_profile", ".bash_login", ".bash_aliases", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".kshrc", ".cshrc", ".tcshrc",
	".env", ".envrc", ".password-store", ".local/share/keyrings", ".mozilla", ".cargo/credentials", ".cargo/credentials.toml", ".cargo/config", ".cargo/config.toml",
}

// Why a directory of PATH can be read, and what belongs to a known toolchain: the latter
// is followed by where that is.
const (
	onPath      = "programs on PATH"
	ofToolchain = "the toolchain at "
)

// Installed reports whether what can be read for a reason is programs and packages that
// the user has installed.
func Installed(reason string) bool {
	return reason == onPath || strings.HasPrefix(reason, ofToolchain) ||
		slices.ContainsFunc(home, func(g Group) bool { return g.Reason == reason })
}

// defaultDevices are the devices that every program may expect.
var defaultDevices = []string{
	"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/ptmx",
	"/dev/tty", // each process's own, if it has one
}

// DefaultPolicy returns what commands need to work in a workspace and no more.
func DefaultPolicy(in Inputs) Policy {
	p := Policy{Devices: slices.Clone(defaultDevices), Network: in.Network, Home: in.Home, Asked: absolutes(in.AllowRead), Reasons: map[string]string{}}
	if p.Home == "/" || !filepath.IsAbs(p.Home) {
		p.Home = ""
	}
	for _, g := range System {
		p.read(g.Reason, "", g.paths)
	}
	p.read(Etc.Reason, "/etc", Etc.paths)
	if in.Users {
		p.read(Users.Reason, "/etc", Users.paths)
	}
	if p.Home != "" {
		for _, g := range home {
			p.read(g.Reason, p.Home, g.paths)
		}
	}
	p.read("--allow-read", "", p.Asked)
	p.Bins = absolutes(filepath.SplitList(in.Path))
	p.write("the workspace", in.Workspace)
	p.write("shared memory", SharedMemory)
	p.write("--allow-write", in.AllowWrite...)
	p.tidy()
	return p
}

// read adds paths below dir, which may hold wildcards when dir is given.
func (p *Policy) read(reason, dir string, paths []string) {
	for _, path := range paths {
		found := []string{path}
		if dir != "" {
			found = expand(filepath.Join(dir, path))
		}
		for _, path := range found {
			p.Read = append(p.Read, path)
			p.because(path, reason)
		}
	}
}

func (p *Policy) write(reason string, paths ...string) {
	for _, path := range absolutes(paths) {
		p.Write = append(p.Write, path)
		p.because(path, reason)
	}
}

// because keeps the first reason.
func (p *Policy) because(path, reason string) {
	if _, ok := p.Reasons[path]; !ok {
		p.Reasons[path] = reason
	}
}

// tidy sorts the paths and removes repetitions.
func (p *Policy) tidy() {
	for _, list := range []*[]string{&p.Read, &p.Write} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
}

// expand lists what a name with a wildcard stands for; a name without is itself.
func expand(pattern string) []string {
	if !strings.Contains(pattern, "*") {
		return []string{pattern}
	}
	found, _ := filepath.Glob(pattern) // the patterns are ours and well formed
	return found
}

// absolutes are the absolute ones of paths, clean.
func absolutes(paths []string) (out []string) {
	for _, path := range paths {
		if filepath.IsAbs(path) {
			out = append(out, filepath.Clean(path))
		}
	}
	return out
}

// secretsIn are the paths of what people keep secret in their homes.
func secretsIn(homes []string) (paths []string) {
	for _, home := range homes {
		for _, name := range secrets {
			paths = append(paths, filepath.Join(home, name))
		}
	}
	return paths
}

// secret reports whether path holds, is, or lies in what people keep secret.
func (p Policy) secret(path string) bool {
	at := []string{path}
	return Below(path, p.hidden) || slices.ContainsFunc(p.hidden, func(hidden string) bool { return Below(hidden, at) })
}

// Allows reports whether commands may read (or with write, change) path, an
// absolute path with its links resolved.
func (p Policy) Allows(path string, write bool) bool {
	path = filepath.Clean(path)
	if Below(path, p.Write) || Below(path, p.Devices) {
		return true
	}
	return !write && Below(path, p.Read)
}

// inGit reports whether path lies in a place of git's, where not all is permitted.
func (p Policy) InGit(path string) bool {
	for _, place := range p.Places {
		if place.Kind != Everything && Below(path, []string{place.Real}) {
			return true
		}
	}
	return false
}

// below reports whether path is one of the roots or lies under one.
func Below(path string, roots []string) bool {
	for _, root := range roots {
		if path == root || root == "/" || strings.HasPrefix(path, root) && path[len(root)] == '/' {
			return true
		}
	}
	return false
}
