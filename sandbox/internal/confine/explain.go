package confine

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// maxExplained bounds how many refusals are told of one command.
const maxExplained = 5

// An Explainer turns what happened to a command that failed into sentences for
// whoever ran it.
type Explainer struct {
	Policy Policy
	Dir    string // where the command ran
	// Resolve follows the links of a path and fails when nothing is there, as
	// filepath.EvalSymlinks does.
	Resolve func(string) (string, error)
	// Hidden: what commands may not reach does not exist for them, instead of
	// being refused, as in an [Isolator].
	Hidden bool
}

// Explain returns one sentence for each thing that the sandbox refused, five at
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
		case denied.MatchString(line):
			for _, path := range namedPaths(line) {
				say(x.file(path, writing.MatchString(line)))
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
			say(x.file(path, readOnly))
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
	return s + " (" + why + "; start the server with " + permit + " to permit it)"
}

var (
	denied  = regexp.MustCompile(`(?i)permission denied|EACCES`)
	absent  = regexp.MustCompile(`(?i)no such file or directory|not found|ENOENT|cannot find`)
	frozen  = regexp.MustCompile(`(?i)read-only file system|EROFS`)
	writing = regexp.MustCompile(`(?i)\b(creat|create|touch|remove|unlink|rmdir|mkdir|move|rename|write|writing|save|copy .* to|symlink|link|directory nonexistent|truncate)`)
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

// file explains why a path was refused; "" when the policy did not do it.
func (x Explainer) file(path string, write bool) string {
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
	case write || x.Policy.Allows(real, false):
		if err != nil { // a right to make a file is its directory's
			return sentence("write "+path, "--allow-write "+filepath.Dir(real))
		}
		return sentence("write "+path, "--allow-write "+real)
	}
	return sentence("read "+path, "--allow-read "+real)
}
