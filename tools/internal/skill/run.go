package skill

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/sandbox/process"
)

// A Run is one command to be run in a skill's run workspace.
type Run struct {
	Skill       string
	Command     string
	Cwd         string
	Env         map[string]string
	Inputs      []Input
	OutputFiles []string
	Outputs     *Outputs
	Save        bool // what OutputFiles find, as artifacts
	OmitContent bool // of what OutputFiles find
	Prefix      string
	Timeout     time.Duration
	Budget      int // bytes of text in the result

	Longer func(process.Result) string // how to get more time

	// Start runs a command in the session's shell and tells the client how it is getting on.
	Start func(context.Context, process.Command) (process.Result, error)
}

// A RunResult is how a command ended, and the files that it left.
type RunResult struct {
	Stdout        string         `json:"stdout" doc:"Standard output, its middle cut when long."`
	Stderr        string         `json:"stderr" doc:"Standard error, cut likewise."`
	ExitCode      int            `json:"exit_code" doc:"Of the shell; -1 after a timeout or a signal."`
	TimedOut      bool           `json:"timed_out" doc:"Whether the timeout ended it."`
	DurationMS    int64          `json:"duration_ms" doc:"How long it ran."`
	OutputFiles   []OutputFile   `json:"output_files" doc:"The files that output_files and outputs found."`
	ArtifactFiles []ArtifactFile `json:"artifact_files,omitempty" doc:"The files that were saved."`
	StdoutBytes   int64          `json:"stdout_bytes,omitempty" doc:"All bytes, when it was cut."`
	StderrBytes   int64          `json:"stderr_bytes,omitempty" doc:"All bytes, when it was cut."`
	LimitsHit     []string       `json:"limits_hit,omitempty" doc:"Limits that left something out."`
	Warnings      []string       `json:"warnings,omitempty" doc:"What went wrong beside the command."`
}

const maxInputs = 100

var variableName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })

// injected are the variables that every run has and no call may set.
var injected = []string{"WORKSPACE_DIR", "SKILLS_DIR", "SKILLS_ROOT", "WORK_DIR", "OUTPUT_DIR", "RUN_DIR", "SKILL_DIR", "PROJECT_DIR", "SKILL_NAME", "SESSION_ID"}

// A plan is a run whose arguments are checked.
type plan struct {
	run     string // the directory of this run
	files   []pattern
	outputs []pattern
}

// Run runs a command in the skill's staged copy. Whatever is wrong with the
// arguments fails before it starts; once it ran there is a result.
func (s *Session) Run(ctx context.Context, r Run) (*RunResult, error) {
	sk, err := s.engine.find(ctx, r.Skill)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(r.Command) == "" {
		return nil, errorf(fault.BadInput, "command is required")
	}
	if !Permits(sk.AllowedTools, "skill_run", r.Command) {
		return nil, errorf(fault.Denied, "%s", Refusal(sk.Name, "skill_run", sk.AllowedTools))
	}
	p, err := r.plan()
	if err != nil {
		return nil, err
	}
	w, err := s.workspace(ctx)
	if err != nil {
		return nil, err
	}
	staged, warnings, err := w.stage(ctx, sk)
	if err != nil {
		return nil, err
	}
	if err := w.dir.Mkdir(p.run); err != nil {
		return nil, errorf(fault.Unavailable, "the directory of the run cannot be made: %v", bare(err))
	}
	if err := s.stageInputs(ctx, w, r.Inputs); err != nil {
		return nil, err
	}
	dir, err := s.cwd(w, staged, p.run, r.Cwd)
	if err != nil {
		return nil, err
	}
	res, err := s.start(ctx, w, &r, p, staged, dir)
	if err != nil {
		return nil, err
	}
	return s.report(ctx, w, &r, p, res, append(warnings[:len(warnings):len(warnings)], w.refusals(res, dir)...)), nil
}

// plan checks the arguments that need no look at the machine.
func (r *Run) plan() (*plan, error) {
	for name := range maps.Keys(r.Env) {
		if !variableName().MatchString(name) {
			return nil, errorf(fault.BadInput, "env has a variable named %q; names are letters, digits and _", name)
		}
		if slices.Contains(injected, name) {
			return nil, errorf(fault.BadInput, "env must not set %s: it is set for every run", name)
		}
	}
	if len(r.Inputs) > maxInputs {
		return nil, errorf(fault.BadInput, "at most %d inputs are allowed", maxInputs)
	}
	for _, in := range r.Inputs {
		if err := in.check(); err != nil {
			return nil, err
		}
	}
	if r.Save && len(r.OutputFiles) == 0 {
		return nil, errorf(fault.BadInput, "save_as_artifacts needs output_files")
	}
	if r.Outputs == nil {
		none := defaultOutputs
		r.Outputs = &none
	}
	for _, prefix := range []string{r.Prefix, r.Outputs.NameTemplate} {
		if prefix != "" && !goodName(prefix+"x") {
			return nil, errorf(fault.BadInput, "%q cannot begin the name of an artifact", prefix)
		}
	}
	p := &plan{run: runsDir + "/run_" + time.Now().UTC().Format("20060102T150405") + "_" + randomHex(3)}
	var err error
	if p.files, err = compileAll(r.OutputFiles, p.run); err != nil {
		return nil, err
	}
	p.outputs, err = compileAll(r.Outputs.Globs, p.run)
	return p, err
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

// start runs the command to its end.
func (s *Session) start(ctx context.Context, w *runWorkspace, r *Run, p *plan, staged, dir string) (res process.Result, err error) {
	ctx, span := begin(ctx, spanRun)
	defer func() { span.ran(res, err) }()
	env := s.loginEnv(ctx)
	c := process.Command{
		Name: "bash", Args: []string{"-c", r.Command}, Path: lookupEnv(env, "PATH"), Dir: dir, Base: env,
		Env: s.runEnv(w, r, p, staged), Stdout: true, Stderr: true, Keep: max(r.Budget/4, 1), Timeout: r.Timeout,
		Read: append(s.skillDirs(), w.dir.Root()), Write: []string{w.abs(workDir), w.abs(outDir), w.abs(runsDir)},
	}
	res, err = r.Start(ctx, c)
	if errors.Is(err, process.ErrNoProgram) {
		c.Name = "sh"
		res, err = r.Start(ctx, c)
	}
	var refused *process.StartError
	switch {
	case errors.As(err, &refused) && (errors.Is(err, process.ErrHasNUL) || errors.Is(err, process.ErrArgsTooLong)):
		return res, errorf(fault.BadInput, "the command cannot be started: %v", err)
	case errors.As(err, &refused):
		return res, errorf(fault.Unavailable, "the shell cannot be started: %v", err)
	case err == nil && res.Cancelled:
		return res, context.Canceled
	}
	return res, err
}

// skillDirs are the directories of the known skills that not every command may
// read; what a skill runs may. Those below a place that commands write are
// left out: every command reads them, and one may put a link there.
func (s *Session) skillDirs() (dirs []string) {
	for _, sk := range s.engine.Repo.List() {
		if !s.engine.exposed(sk.RealDir) {
			dirs = append(dirs, sk.RealDir)
		}
	}
	slices.Sort(dirs)
	return dirs
}

func (s *Session) runEnv(w *runWorkspace, r *Run, p *plan, staged string) map[string]string {
	set := maps.Clone(r.Env)
	if set == nil {
		set = map[string]string{}
	}
	for name, rel := range places(staged, p.run) {
		set[name] = w.abs(rel)
	}
	set["PROJECT_DIR"] = s.engine.Files.Root()
	set["SKILL_NAME"] = r.Skill
	set["SESSION_ID"] = s.ID
	return set
}

// report words how a run ended and looks at the files that it left.
func (s *Session) report(ctx context.Context, w *runWorkspace, r *Run, p *plan, res process.Result, warnings []string) *RunResult {
	out := &RunResult{ExitCode: res.ExitCode, TimedOut: res.TimedOut, DurationMS: res.Duration.Milliseconds(), OutputFiles: []OutputFile{}}
	if res.Signal != "" || res.TimedOut {
		out.ExitCode = -1
	}
	var cut bool
	if out.Stdout, cut = res.Stdout.Text(r.Budget / 4); cut {
		out.StdoutBytes = res.Stdout.Total
	}
	if out.Stderr, cut = res.Stderr.Text(r.Budget / 4); cut {
		out.StderrBytes = res.Stderr.Total
	}
	c := newCollector(ctx, w)
	s.outputs(ctx, c, r, p, out)
	out.Warnings = append(warnings[:len(warnings):len(warnings)], c.warningList()...)
	if r.Longer != nil && r.Longer(res) != "" {
		out.Warnings = append(out.Warnings, r.Longer(res))
	}
	for _, name := range []string{"max_files", "max_file_bytes", "max_total_bytes", "max_output"} {
		if c.hits[name] {
			out.LimitsHit = append(out.LimitsHit, name)
		}
	}
	return out
}

// outputs finds the files that a run has left, and lists and saves them as asked.
func (s *Session) outputs(ctx context.Context, c *collector, r *Run, p *plan, out *RunResult) {
	if len(p.files)+len(p.outputs) == 0 {
		return
	}
	limits := *r.Outputs
	_, span := begin(ctx, spanCollect)
	files := c.collect(p.files, limits)
	listed := c.collect(p.outputs, limits)
	span.found(files, listed)

	_, span = begin(ctx, spanInline)
	room := max(0, r.Budget-len(out.Stdout)-len(out.Stderr))
	for _, f := range files {
		room = out.list(c, f, limits, !r.OmitContent, room)
	}
	for _, f := range listed {
		room = out.list(c, f, limits, limits.Inline, room)
	}
	span.listed(out.OutputFiles)
	if !r.Save && !limits.Save {
		return
	}
	_, span = begin(ctx, spanSave)
	if r.Save {
		s.saveAll(c, files, r.Prefix, limits, out, &span)
	}
	if limits.Save {
		s.saveAll(c, listed, limits.NameTemplate, limits, out, &span)
	}
	span.counted(nil)
}

// list adds a file to the result, once, and returns the bytes that contents may still have.
func (out *RunResult) list(c *collector, f found, limits Outputs, content bool, room int) int {
	i := slices.IndexFunc(out.OutputFiles, func(o OutputFile) bool { return o.Name == f.rel })
	if i >= 0 && (!content || out.OutputFiles[i].Content != "") {
		return room
	}
	give := -1
	if content {
		give = room
	}
	file, used := c.describe(f, limits.MaxFileBytes, give)
	if i >= 0 {
		out.OutputFiles[i] = file
	} else {
		out.OutputFiles = append(out.OutputFiles, file)
	}
	if file.Truncated && content && c.hits["max_output"] {
		return 0
	}
	return room - used
}

func (s *Session) saveAll(c *collector, files []found, prefix string, limits Outputs, out *RunResult, span *stretch) {
	for _, f := range files {
		if a, ok := s.save(c, f, prefix+f.rel, limits.MaxFileBytes); ok {
			out.ArtifactFiles = append(out.ArtifactFiles, a)
			span.files, span.bytes = span.files+1, span.bytes+f.info.Size()
		}
	}
}
