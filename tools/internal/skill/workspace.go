package skill

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/sandbox/scratch"
	"github.com/perstack-ai/perstack-base/sandbox/trace"
	"github.com/perstack-ai/perstack-base/skillrepo"
)

// The directories of a run workspace.
const (
	skillsDir = "skills"
	workDir   = "work"
	outDir    = "out"
	runsDir   = "runs"
	inputsDir = workDir + "/inputs"
	hooksDir  = ".hooks" // copies that hooks run in
)

// Bounds of what is staged.
const (
	maxStagedFiles = 5000
	maxStagedBytes = 256 << 20
)

// A runWorkspace is the run workspace of a session: private, outside the workspace
// of the server, shared by the skills that the session runs.
type runWorkspace struct {
	dir    *scratch.Workdir
	origin *trace.Span // what it was made for

	mu     sync.Mutex
	staged map[string]*staged
}

// A staged skill is a copy, and how source and copy looked when it was made.
type staged struct {
	realDir  string
	source   []skillrepo.File
	settled  bool // a later change of the source would show in its signatures
	copied   []scratch.Stamp
	warnings []string
}

// workspace returns the session's run workspace, made at the first call.
func (s *Session) workspace(ctx context.Context) (w *runWorkspace, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.work != nil {
		return s.work, nil
	}
	_, span := begin(ctx, spanCreate)
	defer func() { span.over(err) }()
	dir, err := s.engine.Workdirs.New(s.ID)
	if err != nil {
		return nil, errorf(fault.Unavailable, "the run workspace cannot be made: %v", err)
	}
	for _, d := range []string{skillsDir, inputsDir, outDir, runsDir} {
		if err := dir.Mkdir(d); err != nil {
			dir.Close()
			return nil, errorf(fault.Unavailable, "the run workspace cannot be made: %v", err)
		}
	}
	s.work = &runWorkspace{dir: dir, origin: trace.Of(ctx), staged: map[string]*staged{}}
	return s.work, nil
}

// abs is a place of the run workspace on the machine.
func (w *runWorkspace) abs(rel string) string {
	if rel == "" || rel == "." {
		return w.dir.Root()
	}
	return w.dir.Root() + "/" + rel
}

// stage makes the copy of a skill what the skill is now. A copy that is still
// what was made of a source that is still the same stays; nothing is read then.
func (w *runWorkspace) stage(ctx context.Context, sk *skillrepo.Skill) (rel string, warnings []string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx, span := begin(ctx, spanSkill)
	defer func() { span.counted(err) }()
	rel = skillsDir + "/" + sk.Name
	listed := time.Now()
	old := w.staged[sk.Name]
	list, copied, err := w.look(ctx, sk, rel, old)
	if err != nil {
		return "", nil, errorf(fault.NotFound, "the files of skill %s cannot be listed: %v", sk.Name, err)
	}
	span.holds(list)
	if err := checkSize(sk.Name, list); err != nil {
		return "", nil, err
	}
	span.Bool(attrCached, false)
	if old != nil && old.settled && old.realDir == sk.RealDir && slices.Equal(old.source, list.Files) && slices.Equal(old.copied, copied) {
		span.Bool(attrCached, true)
		return rel, old.warnings, nil
	}
	delete(w.staged, sk.Name)
	fresh, err := w.copySkill(ctx, sk, list, rel)
	if err != nil {
		return "", nil, err
	}
	fresh.settled = !slices.ContainsFunc(list.Files, func(f skillrepo.File) bool { return !f.Settled(listed) })
	w.staged[sk.Name] = fresh
	return rel, fresh.warnings, nil
}

func checkSize(name string, list *skillrepo.Listing) error {
	if len(list.Files) > maxStagedFiles || list.Bytes > maxStagedBytes {
		return errorf(fault.TooLarge, "skill %s has %d files and %d bytes; at most %d files and %d bytes can be run", name, len(list.Files), list.Bytes, maxStagedFiles, maxStagedBytes)
	}
	return nil
}

// look lists the source of a skill and, at the same time, the copy that there may be.
func (w *runWorkspace) look(ctx context.Context, sk *skillrepo.Skill, rel string, old *staged) (list *skillrepo.Listing, copied []scratch.Stamp, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if old != nil {
			copied, _ = w.dir.Stamps(rel) // what cannot be listed is not what was made
		}
	}()
	list, err = sk.Files(ctx)
	<-done
	return list, copied, err
}

// settleTime is how long a change of a file can go unseen in its times: clocks
// of file systems tick in steps of up to ten milliseconds.
const settleTime = 12 * time.Millisecond

// copySkill copies beside the old copy and puts the new one in its place.
func (w *runWorkspace) copySkill(ctx context.Context, sk *skillrepo.Skill, list *skillrepo.Listing, rel string) (*staged, error) {
	tmp := w.dir.Temp(skillsDir)
	fail := func(err error) (*staged, error) {
		_ = w.dir.Remove(tmp)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, errorf(fault.Unavailable, "skill %s cannot be copied into the run workspace: %v", sk.Name, err)
	}
	if err := w.copyTree(ctx, sk, list, tmp, 0o444); err != nil {
		return fail(err)
	}
	st := &staged{realDir: sk.RealDir, source: list.Files}
	if err := w.addLinks(sk, list, tmp, st); err != nil {
		return fail(err)
	}
	trash := w.dir.Temp(skillsDir)
	if w.dir.Rename(rel, trash) == nil {
		go func() { _ = w.dir.Remove(trash) }() // nobody waits for it
	}
	if err := w.dir.Rename(tmp, rel); err != nil {
		return fail(err)
	}
	time.Sleep(settleTime)
	var err error
	if st.copied, err = w.dir.Stamps(rel); err != nil {
		return fail(err)
	}
	return st, nil
}

// copyTree copies the files of a skill into the new directory tmp.
func (w *runWorkspace) copyTree(ctx context.Context, sk *skillrepo.Skill, list *skillrepo.Listing, tmp string, mode fs.FileMode) error {
	for _, d := range append([]string{"."}, list.Dirs...) {
		if err := w.dir.Mkdir(path.Join(tmp, d)); err != nil {
			return err
		}
	}
	return w.copyFiles(ctx, sk, list.Files, tmp, mode)
}

// copiers is how many files are copied at a time: making a file is waiting for the disk.
const copiers = 8

// copyFiles copies files below the directory tmp; each gets the permission bits of
// mode, and those to execute that it has.
func (w *runWorkspace) copyFiles(ctx context.Context, sk *skillrepo.Skill, files []skillrepo.File, tmp string, mode fs.FileMode) error {
	var next atomic.Int64
	var all sync.WaitGroup
	errs := make([]error, copiers)
	for i := range errs {
		all.Go(func() {
			for errs[i] == nil {
				at := int(next.Add(1)) - 1
				if at >= len(files) {
					return
				}
				errs[i] = w.copyFile(ctx, sk, files[at], tmp, mode)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (w *runWorkspace) copyFile(ctx context.Context, sk *skillrepo.Skill, f skillrepo.File, tmp string, mode fs.FileMode) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	from, err := sk.Open(f)
	if err != nil {
		return err
	}
	defer from.Close()
	_, err = w.dir.Create(tmp+"/"+f.Path, mode|f.Mode.Perm()&0o111, from, maxStagedBytes)
	return err
}

// addLinks makes out, work and inputs lead to the directories of that name,
// unless the skill ships such an entry itself.
func (w *runWorkspace) addLinks(sk *skillrepo.Skill, list *skillrepo.Listing, tmp string, st *staged) error {
	for _, link := range []struct{ name, target string }{
		{"out", "../../" + outDir}, {"work", "../../" + workDir}, {"inputs", "../../" + inputsDir},
	} {
		ships := func(p string) bool { return scratch.Below(p, link.name) }
		if slices.Contains(list.Dirs, link.name) || slices.ContainsFunc(list.Files, func(f skillrepo.File) bool { return ships(f.Path) }) {
			st.warnings = append(st.warnings, "skill "+sk.Name+" has an entry of its own named "+link.name+"; use $"+variableOf(link.name)+" for the directory of the run workspace")
			continue
		}
		if err := w.dir.Link(link.target, tmp+"/"+link.name); err != nil {
			return err
		}
	}
	return nil
}

func variableOf(link string) string {
	if link == "out" {
		return "OUTPUT_DIR"
	}
	return strings.ToUpper(workDir) + "_DIR" + strings.TrimPrefix("/"+link, "/work")
}
