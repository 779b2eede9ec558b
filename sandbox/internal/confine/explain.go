package confine

import (
	"errors"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// maxExplained bounds how many refusals are told of one command.
const maxExplained = 3

// An Explainer turns what the sandbox refused a command into sentences for a model,
// which cannot restart its server, but can ask its user to.
type Explainer struct {
	Policy Policy
	Dir    string // where the command ran
	// Resolve follows the links of a path and fails when nothing is there, as
	// filepath.EvalSymlinks does.
	Resolve func(string) (string, error)
	// Private are directories of the server's own, for which no flag is of use.
	Private []string
	// Hidden: what commands may not reach does not exist for them, instead of
	// being refused, as in an [Isolator].
	Hidden bool
}

// Explain returns one sentence for each thing that the sandbox refused, three at
// most: what the broker has on record, and the paths that stand beside a
// "Permission denied" in stderr, if the policy does not allow them.
func (x Explainer) Explain(stderr string, refusals []Refusal) []string {
	var out []string
	say := func(s string) {
		if s != "" && len(out) < maxExplained && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	for _, r := range refusals {
		say(r.Sentence())
	}
	for line := range strings.Lines(stderr) {
		switch {
		case immaterial.MatchString(line):
		case becoming.MatchString(line):
			say(sentence("become another user", ""))
		case denied.MatchString(line):
			for _, path := range namedPaths(line) {
				say(x.file(path, attempt(line)))
			}
		case x.Hidden:
			x.hidden(line, say)
		}
	}
	return out
}

// hidden explains a line that complains about what is not there, if it is there
// outside of the command's view.
func (x Explainer) hidden(line string, say func(string)) {
	if !x.Policy.Network && unreachable.MatchString(line) {
		say(sentence("reach the network", permitNetworkFlag))
	}
	readOnly := frozen.MatchString(line)
	if !readOnly && !absent.MatchString(line) {
		return
	}
	for _, path := range namedPaths(line) {
		at := path
		if !filepath.IsAbs(at) {
			at = filepath.Join(x.Dir, at)
		}
		if real, err := x.Resolve(at); readOnly || err == nil && !x.Policy.Allows(real, false) {
			say(x.file(path, map[bool]access{true: toWrite, false: toRead}[readOnly]))
		}
	}
}

// Sentence says what was refused and what would permit it.
func (r Refusal) Sentence() string { return sentence(r.What, r.Permit) }

func sentence(what, permit string) string {
	s := "blocked by the sandbox: " + what
	if permit == "" {
		return s
	}
	why := "outside the workspace"
	if strings.HasPrefix(permit, "--network") {
		why = "the network is closed"
	}
	return s + " (" + why + "; ask the user to add " + permit + " to the arguments of perstack-base)"
}

var (
	denied  = regexp.MustCompile(`(?i)permission denied|EACCES`)
	absent  = regexp.MustCompile(`(?i)no such file or directory|not found|ENOENT|cannot find`)
	frozen  = regexp.MustCompile(`(?i)read-only file system|EROFS`)
	writing = regexp.MustCompile(`(?i)\b(creat|create|touch|remove|unlink|rmdir|mkdir|move|rename|write|writing|save|copy .* to|symlink|link|directory nonexistent|truncate)`)
	// What is no cause of a failure: a note of the go command's for later.
	immaterial = regexp.MustCompile(`writing stat cache`)
	becoming   = regexp.MustCompile(`(?i)^(sudo|su|doas): .*(denied|not permitted|no new privileges|setuid|set-?uid|effective uid|cannot set|authentication)`)
	reading    = regexp.MustCompile(`(?i)\b(cat|less|more|head|tail|ls|find|grep|rg|wc|stat|du|sed|awk|source|diff|read|reading|cannot open|can't open|opening|open directory|chdir|cd|list|listing|import|load|loading)\b`)
	// What programs say of addresses and names where there is no network.
	unreachable = regexp.MustCompile(`(?i)network is unreachable|ENETUNREACH|name resolution|could not resolve|ENOTFOUND|EAI_AGAIN`)
	// Quoted names first, as they may hold blanks (the quote in "can't" opens
	// none); then absolute paths, and what stands alone before the last colon.
	quoted   = regexp.MustCompile("(?:^|[^\\pL]|\\bb)['\"`‘“]([^'\"`’”]+)['\"`’”]")
	absolute = regexp.MustCompile(`(?:^|[\s:=(\[])(/[^\s:'"` + "`" + `,;)\]]+)`)
	alone    = regexp.MustCompile(`([^\s:'"]+): (?i:permission denied|no such file or directory|read-only file system)`)
)

// namedPaths returns what looks like a path in a line of stderr.
func namedPaths(line string) []string {
	var out []string
	for _, re := range []*regexp.Regexp{quoted, absolute, alone} {
		for _, m := range re.FindAllStringSubmatch(line, -1) {
			if strings.HasPrefix(m[1], "//") || strings.Contains(m[1], "://") {
				continue // the rest of a URL
			}
			if !slices.Contains(out, m[1]) && len(m[1]) < 4096 {
				out = append(out, m[1])
			}
		}
	}
	return out
}

// An access is what a program tried, as far as its words tell.
type access int

const (
	toReadOrWrite access = iota
	toRead
	toWrite
)

func attempt(line string) access {
	switch {
	case writing.MatchString(line):
		return toWrite
	case reading.MatchString(line):
		return toRead
	}
	return toReadOrWrite
}

// file explains why a path was refused; "" when the policy did not do it.
func (x Explainer) file(path string, tried access) string {
	relative := !filepath.IsAbs(path)
	if relative {
		path = filepath.Join(x.Dir, path)
	}
	path = filepath.Clean(path)
	real, err := x.Resolve(path)
	if err != nil {
		if relative { // any word may look like a relative path
			return ""
		}
		dir, err := x.Resolve(filepath.Dir(path))
		if err != nil {
			dir = filepath.Dir(path)
		}
		real = filepath.Join(dir, filepath.Base(path))
	}
	switch {
	case x.Policy.Allows(real, true):
		return ""
	case below(real, x.Private):
		return sentence("change "+path+", which is read only: write in the workspace, $TMPDIR or $HOME", "")
	case errors.Is(err, fs.ErrNotExist): // it was to be made; that right is its directory's
		return sentence("write "+path, "--allow-write "+filepath.Dir(real))
	case tried == toWrite || x.Policy.Allows(real, false):
		return sentence("write "+path, "--allow-write "+real)
	case tried == toRead:
		return sentence("read "+path, "--allow-read "+real)
	}
	return sentence("read or write "+path, "--allow-read "+real+", or --allow-write "+real+" if it is to be written,")
}
