package skill

import (
	"regexp"
	"strings"
	"sync"

	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/sandbox/process/capture"
	"github.com/perstack-ai/perstack-base/sandbox/scratch"
)

// readOnlyCopy stands for every refusal to write the copy of a skill: no flag
// would permit it, and its path is new with every session.
const readOnlyCopy = "blocked by the sandbox: the skill's copy is read only; write to out/ or work/ ($OUTPUT_DIR, $WORK_DIR)"

// refusals is what the sandbox kept a command of a skill from, which ran in dir.
func (w *workspace) refusals(r process.Result, dir string) (sentences []string) {
	private := false
	for _, s := range r.Refused {
		if strings.Contains(s, w.dir.Root()) {
			private = true
		} else {
			sentences = append(sentences, s)
		}
	}
	if private || len(sentences) == 0 && r.ExitCode != 0 && w.deniedMaking(dir, r.Stderr) {
		sentences = append(sentences, readOnlyCopy)
	}
	return sentences
}

// denied finds the names that a program was not allowed to make: mkdir and touch
// put them in quotes, shells between colons.
var denied = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)(?:[‘'"]|: )([^‘’'":\n]+)[’'"]?: (?:Permission denied|Read-only file system)$`)
})

// deniedMaking reports whether a command in the copy of a skill complains of a name
// that is not there: it tried to make it.
func (w *workspace) deniedMaking(dir string, stderr capture.Output) bool {
	rel, ok := strings.CutPrefix(dir, w.dir.Root()+"/")
	if !ok || !scratch.Below(rel, skillsDir) {
		return false
	}
	for _, m := range denied().FindAllStringSubmatch(headText(stderr), -1) {
		if strings.HasPrefix(m[1], "/") {
			continue
		}
		if at, err := w.dir.Resolve(rel + "/" + m[1]); err == nil && !at.Exists && scratch.Below(at.Rel, skillsDir) {
			return true
		}
	}
	return false
}
