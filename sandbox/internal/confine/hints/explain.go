package hints

import (
	"cmp"
	"errors"
	"io/fs"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/internal/confine/policy"
	"github.com/perstack-ai/perstack-base/sandbox/internal/lazyregexp"
)

// maxExplained bounds how many refusals are told of one command.
const maxExplained = 3

// An Explainer turns what the sandbox refused a command into sentences for a model,
// which cannot restart its server, but can ask its user to.
type Explainer struct {
	Policy policy.Policy
	Dir    string // where the command ran
	// Resolve follows the links of a path and fails when nothing is there, as
	// filepath.EvalSymlinks does.
	Resolve func(string) (string, error)
	// Private are directories of the server's own, for which no flag is of use.
	Private []string
	// Hidden: what commands may not reach does not exist for them, instead of
	// being refused, as in an [Isolator].
	Hidden bool
	// Listens reports whether a server of the machine listens on a port of loopback;
	// where commands are Hidden they have a loopback of their own. May be nil.
	Listens func(port string) bool
	// Refuses words why rules for the network do not permit a host, "" when they do;
	// nil where there are none. Said are sentences of what they refused, which come first.
	Refuses func(host string, port uint16) string
	Said    []string
	// Unjudged: nothing can judge single calls here, and those that need it are refused.
	Unjudged bool
}

// unjudged are the words for those calls, and judgedCalls how programs name them.
const unjudged = "bind or connect a socket, or change the mode, owner or times of a file, for which another sandbox around this server leaves no judge"

var judgedCalls = lazyregexp.New(`(?i)chmod|chown|utime|preserving|\b(permissions|ownership|times|bind|connect|listen)\b`)

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
	for _, s := range x.Said {
		say(s)
	}
	for _, r := range refusals {
		say(r.Sentence())
	}
	for line := range strings.Lines(stderr) {
		switch {
		case immaterial.MatchString(line):
		case nesting.MatchString(line):
			say(sentence("make a sandbox of a browser's own: start it with --no-sandbox, this one holds it already", ""))
		case becoming.MatchString(line):
			say(sentence("become another user", ""))
		case x.Hidden && unsharing.MatchString(line):
			say(sentence("create namespaces", ""))
		case tracing.MatchString(line):
			say(sentence("stop processes at their exit, as strace does: they could keep each other from being killed; gdb does without", ""))
		case pinging.MatchString(line):
			say(sentence("open a raw network socket", ""))
		case x.Unjudged && denied.MatchString(line) && judgedCalls.MatchString(line):
			say(sentence(unjudged, ""))
		case denied.MatchString(line):
			for _, path := range namedPaths(line) {
				if !onRecord(path, refusals) {
					say(x.file(path, attempt(line)))
				}
			}
		case x.Refuses != nil && x.unreached(line, say):
		case x.Hidden:
			x.hidden(line, say)
		case nonexistent.MatchString(line): // a program's own words for what it may not look at
			x.missing(line, say)
		}
	}
	return out
}

// onRecord reports whether a refusal names the path already.
func onRecord(path string, refusals []Refusal) bool {
	return slices.ContainsFunc(refusals, func(r Refusal) bool { return strings.HasSuffix(r.What, " "+path) })
}

// Complaints are the lines at the end of a command's standard output in which
// programs complain: errors come that way through a pipe, as in "2>&1 | tail".
// Anything may stand there, so only lines in the shape of an error count.
func Complaints(stdout string) string {
	const lookedAt = 4 << 10
	if len(stdout) > lookedAt {
		stdout = stdout[len(stdout)-lookedAt:]
	}
	return strings.Join(complaint.FindAllString(stdout, -1), "\n")
}

// hidden explains a line that complains about what is not there, if it is there
// outside of the command's view.
func (x Explainer) hidden(line string, say func(string)) {
	switch at := notListening.FindStringSubmatch(line); {
	case x.Policy.Network:
	case x.Refuses != nil && unreachable.MatchString(line): // see unreached
	case unreachable.MatchString(line):
		say(sentence("reach the network", PermitNetworkFlag))
	case at != nil && x.Listens != nil && x.Listens(at[1]+at[2]):
		permit := PermitNetworkFlag
		if x.Refuses != nil {
			permit = PermitElsewhere
		}
		say(sentence("connect to 127.0.0.1:"+at[1]+at[2]+OutsideListener, permit))
	}
	switch {
	case frozen.MatchString(line):
		for _, path := range namedPaths(line) {
			say(x.file(path, toWrite))
		}
	case absent.MatchString(line) || nonexistent.MatchString(line):
		x.missing(line, say)
	}
}

// unreached explains a line that says that a host was not reached, where the gate has
// nothing on record, and reports whether the line said so.
func (x Explainer) unreached(line string, say func(string)) bool {
	tried := toReach.FindStringSubmatch(line)
	none := noRoute.MatchString(line)
	if tried == nil || len(x.Said) > 0 {
		if none && len(x.Said) == 0 {
			say(sentence("network to an address that no rule of --network names", permitRule))
		}
		return none
	}
	host, number := cmp.Or(tried[1], tried[3], tried[5]), cmp.Or(tried[2], tried[4], tried[6])
	port, err := strconv.ParseUint(number, 10, 16)
	if addr, notAddr := netip.ParseAddr(host); err != nil || port == 0 || notAddr == nil && (addr.IsLoopback() || addr.IsUnspecified()) {
		return false
	}
	said := x.Refuses(host, uint16(port))
	say(said)
	return none || said != ""
}

// missing explains a line that says that something does not exist which does, but
// outside, or whose directory does.
func (x Explainer) missing(line string, say func(string)) {
	for _, path := range namedPaths(line) {
		at := path
		if !filepath.IsAbs(at) {
			at = filepath.Join(x.Dir, at)
		}
		tried := attempt(line)
		if tried != toConnect {
			tried = attempt(strings.ReplaceAll(line, path, "")) // names of files tell nothing
		}
		switch real, err := x.Resolve(at); {
		case err == nil && !x.Policy.Allows(real, false):
			if !x.Hidden && tried != toConnect {
				tried = toRead // nobody finds it missing who writes it
			}
			say(x.file(path, max(tried, toRead)))
		case err != nil && tried != toRead && tried != toConnect && x.unseen(filepath.Dir(at)): // it was to be made
			say(x.file(path, toWrite))
		}
	}
}

// unseen reports whether a directory is there, and not for commands: it neither
// is, holds, nor lies in anything that they may reach.
func (x Explainer) unseen(dir string) bool {
	real, err := x.Resolve(dir)
	if err != nil || real == "/tmp" || x.Policy.Allows(real, false) {
		return false
	}
	within := func(path string) bool { return policy.Below(path, []string{real}) }
	return !slices.ContainsFunc(x.Policy.Read, within) && !slices.ContainsFunc(x.Policy.Write, within)
}

// Sentence says what was refused and what would permit it.
func (r Refusal) Sentence() string { return sentence(r.What, r.Permit) }

func sentence(what, permit string) string {
	s := "blocked by the sandbox: " + what
	if permit == "" {
		return s
	}
	why := "outside the workspace"
	switch permit {
	case PermitElsewhere:
		return s + " (under the rules of --network loopback is the session's own; ask the user to let that server listen on another address of the machine, and to name that in --network)"
	case permitRule:
		return s + " (ask the user to add " + permit + ")"
	case PermitNetworkFlag:
		why = "the network is closed"
	case PermitNamespacesFlag:
		why = "the machine's are not the session's own"
	}
	return s + " (" + why + "; ask the user to add " + permit + " to the arguments of perstack-base)"
}

var (
	denied      = lazyregexp.New(`(?i)permission denied|EACCES`)
	absent      = lazyregexp.New(`(?i)no such file|directory nonexistent|not found|ENOENT|cannot find|cannot connect to`)
	nonexistent = lazyregexp.New(`(?i)does not exist|nonexistent`)
	frozen      = lazyregexp.New(`(?i)read-only file system|EROFS`)
	writing     = lazyregexp.New(`(?i)\b(creat|create|touch|remove|unlink|rmdir|mkdir|move|rename|write|writing|save|copy .* to|symlink|link|directory nonexistent|truncate)`)
	// What is no cause of a failure: a note of the go command's for later, and of
	// gdb's, which has another way to a process's memory.
	immaterial = lazyregexp.New(`writing stat cache|^warning: opening /proc/\S+/mem file`)
	// What Chromium says where it cannot make its own sandbox.
	nesting   = lazyregexp.New(`No usable sandbox!|FATAL:sandbox/linux/services/credentials\.cc|unning as root without --no-sandbox|Failed to move to new namespace`)
	becoming  = lazyregexp.New(`(?i)^(sudo|su|doas): .*(denied|not permitted|no new privileges|setuid|set-?uid|effective uid|cannot set|authentication|critical error)`)
	unsharing = lazyregexp.New(`(?i)^(unshare: unshare failed|bwrap: .*namespace)`)
	tracing   = lazyregexp.New(`^strace: .*PTRACE_(SEIZE|SETOPTIONS).*: Invalid argument`)
	pinging   = lazyregexp.New(`\bping6?: .*(?i:permission denied|not permitted|missing cap_net_raw)`)
	reading   = lazyregexp.New(`(?i)\b(cat|less|more|head|tail|ls|find|grep|rg|wc|stat|du|sed|awk|source|diff|read|reading|cannot open|can't open|opening|open directory|chdir|cd|list|listing|import|load|loading)\b`)
	// What programs say of addresses and names where there is no network.
	unreachable = lazyregexp.New(`(?i)network (is )?unreachable|\bENETUNREACH\b|name resolution|could not resolve|\bENOTFOUND\b|\bEAI_AGAIN\b|no matching distribution found`)
	noRoute     = lazyregexp.New(`(?i)network (is )?unreachable|\bENETUNREACH\b|no route to host|\bEHOSTUNREACH\b`)
	// A program's words for the host and port that it did not reach.
	toReach = lazyregexp.New(`(?i)(?:connect(?:ion)? to (?:host |server at |\()?|connecting to [^ ]*\(|connect E[A-Z]+ |dial tcp )` +
		`(?:"?([0-9a-z][0-9a-z.:_-]*)"?\)?,? port (\d{1,5})\b|\[([0-9a-f.:]+)\]:(\d{1,5})\b|([0-9a-z][0-9a-z._-]*):(\d{1,5})(?::? |:?$))`)
	notListening = lazyregexp.New(`(?i)(?:127\.0\.0\.1|localhost|::1)\]?\)?(?::|,? port )(\d+)\b.*(?:refused|couldn't connect)|ECONNREFUSED (?:127\.0\.0\.1|::1):(\d+)`)
	// A line of an error, which begins with who says it and ends with why.
	complaint = lazyregexp.New(`(?m)^(npm (error|ERR!) |\pZ?(?:ERR_PNPM_\w+|EAI_AGAIN)\pZ+|➤ YN\d+: |;; |[\w.+/-]+: ).*(?i:permission denied|no such file or directory|does not exist|read-only file system|network (?:is )?unreachable\.?|connection refused|couldn't connect to server|could not resolve host.*|EAI_AGAIN.*|no matching distribution found.*)$`)
	// Quoted names first, as they may hold blanks (the quote in "can't" opens
	// none); then absolute paths, and what stands alone before the last colon.
	quoted   = lazyregexp.New("(?:^|[^\\pL]|\\bb)['\"`‘“]([^'\"`’”]+)['\"`’”]")
	absolute = lazyregexp.New(`(?:^|[\s:=(\[])(/[^\s:'"` + "`" + `,;)\]]+)`)
	alone    = lazyregexp.New(`([^\s:'"]+): (?i:permission denied|no such file or directory|read-only file system|directory nonexistent)`)
	socket   = lazyregexp.New(`\bunix://(/[^\s'"]*[^\s'".,:;])`)
)

// speaker is a program by its path that begins a line, with a shell's count of lines.
var speaker = lazyregexp.New(`^/[^\s:]+: (?:(?:line )?\d+: )?`)

// namedPaths returns what looks like a path in a line of stderr, but for the program that
// says it: nobody shall be asked to let commands write a shell.
func namedPaths(line string) []string {
	if said := speaker.FindString(line); said != "" {
		if out := pathsIn(line[len(said):]); len(out) > 0 {
			return out
		}
	}
	return pathsIn(line)
}

func pathsIn(line string) []string {
	var out []string
	for _, re := range []*lazyregexp.Regexp{quoted, absolute, alone, socket} {
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
	toConnect
)

func attempt(line string) access {
	switch {
	case socket.MatchString(line):
		return toConnect
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
	case x.Policy.Allows(real, true) && !x.Policy.InGit(real):
		return ""
	case policy.Below(real, x.Private):
		return sentence("change "+path+", which is read only: write in the workspace, $TMPDIR or $HOME", "")
	case x.Policy.Repository != "" && tried != toRead && policy.Below(real, []string{x.Policy.Repository}):
		return sentence("change "+path+": of the repository outside the workspace only new commits, branches and objects can be written, and no links; "+
			"ask the user to run this git command outside (deleting and renaming branches, packing and settings need that)", "")
	case errors.Is(err, fs.ErrNotExist): // it was to be made; that right is its directory's
		return sentence("write "+path, "--allow-write "+filepath.Dir(real))
	case tried == toConnect:
		return sentence("connect to "+path, "--allow-write "+real)
	case tried == toWrite || x.Policy.Allows(real, false):
		return sentence("write "+path, "--allow-write "+real)
	case tried == toRead:
		return sentence("read "+path, "--allow-read "+real)
	}
	return sentence("read or write "+path, "--allow-read "+real+", or --allow-write "+real+" if it is to be written,")
}
