package skill

import (
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/sandbox/scratch"
)

// leading is a variable at the beginning of a path.
var leading = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\$(?:([A-Z_]+)|\{([A-Z_]+)\})(?:/|$)`) })

// cutVariable splits $NAME/rest and ${NAME}/rest.
func cutVariable(p string) (name, rest string, ok bool) {
	m := leading().FindStringSubmatch(p)
	if m == nil {
		return "", p, false
	}
	return m[1] + m[2], p[len(m[0]):], true
}

// places are the directories that variables stand for, below the run workspace.
func places(skill, run string) map[string]string {
	return map[string]string{
		"WORKSPACE_DIR": ".", "SKILLS_DIR": skillsDir, "SKILLS_ROOT": skillsDir, "WORK_DIR": workDir, "OUTPUT_DIR": outDir, "RUN_DIR": run, "SKILL_DIR": skill,
	}
}

// cwd finds the directory that a command runs in; skill and run are the staged
// skill and the directory of this run.
func (s *Session) cwd(w *runWorkspace, skill, run, cwd string) (string, error) {
	p := strings.ReplaceAll(strings.TrimSpace(cwd), `\`, "/")
	name, rest, variable := cutVariable(p)
	switch {
	case p == "":
		return w.abs(skill), nil
	case variable && name == "PROJECT_DIR":
		return s.projectDir(cwd, orHere(rest))
	case variable:
		base, ok := places(skill, run)[name]
		if !ok {
			return "", errorf(fault.BadInput, "cwd begins with an unknown variable: %s", cwd)
		}
		return w.runDir(cwd, base+"/"+orHere(rest), reach(base, skill))
	case strings.HasPrefix(p, "/"):
		return s.absoluteDir(w, cwd, p)
	case strings.HasPrefix(p, "$"):
		return "", errorf(fault.BadInput, "cwd begins with an unknown variable: %s", cwd)
	}
	return w.runDir(cwd, skill+"/"+p, reach(skill, skill))
}

func orHere(p string) string {
	if p = strings.TrimLeft(p, "/"); p == "" {
		return "."
	}
	return p
}

// reach is where a directory named from base may end: below base, and for the
// skill also where its links lead.
func reach(base, skill string) []string {
	if base == skill {
		return []string{skill, outDir, workDir}
	}
	return []string{base}
}

// absoluteDir takes a real path, or one from the top of the run workspace.
func (s *Session) absoluteDir(w *runWorkspace, cwd, p string) (string, error) {
	if path.Clean(p) == "/" {
		return w.dir.Root(), nil
	}
	if scratch.Below(p, w.dir.Root()) {
		return w.runDir(cwd, orHere(strings.TrimPrefix(p, w.dir.Root())), []string{"."})
	}
	if dir, err := s.projectDir(cwd, p); err == nil {
		return dir, nil
	}
	first, _, _ := strings.Cut(strings.TrimLeft(p, "/"), "/")
	if slices.Contains([]string{skillsDir, workDir, outDir, runsDir}, first) {
		return w.runDir(cwd, strings.TrimLeft(p, "/"), []string{"."})
	}
	return s.projectDir(cwd, p)
}

// projectDir finds a directory of the server's workspace.
func (s *Session) projectDir(cwd, p string) (string, error) {
	at, err := s.engine.Files.ResolveDir(p)
	switch {
	case err == nil:
		return at.Abs, nil
	case errors.Is(err, fs.ErrNotExist):
		return "", errorf(fault.NotFound, "working directory not found: %s", cwd)
	case errors.Is(err, sandbox.ErrNotDirectory):
		return "", errorf(fault.UnsupportedType, "not a directory: %s", cwd)
	}
	return "", outsideError(cwd)
}

func outsideError(what string) error {
	return &Error{Kind: fault.OutsideWorkspace, Msg: what + " leads outside the directories that it may name",
		Way: "Name a place of the skill, of work or out in the run workspace, or of the workspace ($PROJECT_DIR)."}
}

// runDir finds a directory of the run workspace, whose real place must lie in one
// of the given ones. What is missing below work and out is made.
func (w *runWorkspace) runDir(cwd, p string, within []string) (string, error) {
	at, err := w.dir.Resolve(p)
	if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, sandbox.ErrEscapes) {
		return "", errorf(fault.NotFound, "working directory not found: %s", cwd)
	}
	if err != nil || !inOne(at.Rel, within) {
		return "", outsideError(cwd)
	}
	switch {
	case at.IsDir():
		return at.Abs, nil
	case at.Exists:
		return "", errorf(fault.UnsupportedType, "not a directory: %s", cwd)
	case !inOne(at.Rel, []string{workDir, outDir}):
		return "", errorf(fault.NotFound, "working directory not found: %s", cwd)
	}
	if err := w.dir.Mkdir(at.Rel); err != nil {
		return "", errorf(fault.Unavailable, "working directory cannot be made: %s", cwd)
	}
	return at.Abs, nil
}

// inOne reports whether a place is or lies below one of the directories.
func inOne(rel string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool { return d == "." || scratch.Below(rel, d) })
}
