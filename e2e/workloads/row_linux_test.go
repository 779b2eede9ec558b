package workloads

import (
	"fmt"
	"regexp"
	"strings"
)

// A section is a heading of docs/workloads.md with its rows.
type section struct {
	title string
	rows  []row
}

// A row is one workload. Its shell lines run in a directory of its own in the
// workspace, which begins with files and with what the line before, run outside, left.
// They may use $OUTSIDE, a directory beside the workspace, and $PORT, where a server
// listens that no session started; the line before also $BINARY, the server under test.
type row struct {
	name   string
	needs  []string          // programs without which the row is skipped
	slow   bool              // run only when PERSTACK_BASE_WORKLOADS asks
	plain  bool              // only for a user who is not root
	files  map[string]string // of the row's directory
	before string            // run outside, by the same user
	calls  []string          // each a call of its own; all but the last must succeed

	workspace string   // this directory of the row's is the workspace of a server of its own
	sessions  bool     // each call is in a session of its own
	alone     bool     // the row has a server of its own, for before changes the home directory
	env       []string // of a server of its own
	online    bool     // with --network allow

	open     bool              // refused: works where nothing confines commands
	shows    string            // works: what the last call prints; refused: what it prints all the same
	says     string            // refused: the sentence of the answer
	saysOnly map[string]string // ... where that depends on the mechanism
	note     string            // for the document
	told     bool              // works, and the answer names refusals that the program does without
}

// own reports whether the row wants a server of its own.
func (r row) own() bool {
	return r.workspace != "" || len(r.env) > 0 || r.sessions || r.alone || r.online
}

// sentence is what the row's answer says in one mechanism; "" where it works.
func (r row) sentence(mechanism string) string {
	if s, ok := r.saysOnly[mechanism]; ok {
		return s
	}
	return r.says
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// slug is the row's name as a directory.
func (r row) slug() string {
	return strings.Trim(notInNames.ReplaceAllString(strings.ToLower(r.name), "-"), "-")
}

// blocked begins every sentence about what the sandbox refused.
const blocked = "blocked by the sandbox: "

// The ends of the sentences that many rows share; an ellipsis stands for anything.
const (
	noNetwork  = blocked + "... (the network is closed; ask the user to add --network allow to the arguments of perstack-base)"
	mayRead    = " (outside the workspace; ask the user to add --allow-read %s to the arguments of perstack-base)"
	mayWrite   = " (outside the workspace; ask the user to add --allow-write %s to the arguments of perstack-base)"
	becomeUser = blocked + "become another user"
	namespaces = blocked + "create namespaces"
)

// A tool that would try longer than a minute what cannot come is ended, and says so:
// npm does for 70 s. A machine under load may take half of that.
const (
	patiently = "timeout 60 "
	gaveUp    = " || test $? != 124 && echo gave up by itself"
	byItself  = "gave up by itself\n"
)

func readOf(path string) string { return blocked + "read " + path + fmt.Sprintf(mayRead, path) }
func writeOf(path, allow string) string {
	return blocked + "write " + path + fmt.Sprintf(mayWrite, allow)
}

// matches reports whether a sentence is the wanted one.
func matches(sentence, want string) bool {
	parts := strings.Split(want, "...")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$").MatchString(sentence)
}
