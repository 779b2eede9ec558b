package skill

import (
	"context"

	"github.com/perstack-ai/perstack-base/sandbox/process"
	"github.com/perstack-ai/perstack-base/sandbox/trace"
	"github.com/perstack-ai/perstack-base/skillrepo"
)

// The spans of a run, in the order in which they come.
const (
	spanCreate  = "workspace.create"
	spanSkill   = "workspace.stage.skill"
	spanInputs  = "workspace.stage.inputs"
	spanRun     = "workspace.run"
	spanCollect = "workspace.collect"
	spanInline  = "workspace.inline"
	spanSave    = "workspace.save"
	spanCleanup = "workspace.cleanup" // when the session ends, in the trace of the call that it was made for
)

// Attributes of these.
const (
	attrFiles    = "perstack_base.files"
	attrBytes    = "perstack_base.bytes"
	attrCached   = "perstack_base.cached"
	attrExitCode = "perstack_base.exit_code"
	attrTimedOut = "perstack_base.timed_out"
)

// A stretch is a part of a run that a span is about: how many files and bytes it was
// about, and whether it went well.
type stretch struct {
	*trace.Span
	files, bytes int64
}

func begin(ctx context.Context, name string) (context.Context, stretch) {
	ctx, span := trace.Start(ctx, name)
	return ctx, stretch{Span: span}
}

// holds says that the stretch is about the files of a skill.
func (s *stretch) holds(list *skillrepo.Listing) {
	s.files, s.bytes = int64(len(list.Files)), list.Bytes
}

// found ends the stretch that looked for files.
func (s *stretch) found(lists ...[]found) {
	for _, list := range lists {
		for _, f := range list {
			s.files, s.bytes = s.files+1, s.bytes+f.info.Size()
		}
	}
	s.counted(nil)
}

// listed ends the stretch that described them: its bytes are those that the result has.
func (s *stretch) listed(files []OutputFile) {
	for _, f := range files {
		s.files, s.bytes = s.files+1, s.bytes+int64(len(f.Content))
	}
	s.counted(nil)
}

// ran ends the stretch in which the command ran.
func (s *stretch) ran(res process.Result, err error) {
	if err == nil || res.Cancelled {
		s.Int(attrExitCode, int64(res.ExitCode))
		s.Bool(attrTimedOut, res.TimedOut)
	}
	if res.ExitCode != 0 {
		s.Fail()
	}
	s.over(err)
}

// counted ends the stretch, with what it was about.
func (s *stretch) counted(err error) {
	s.Int(attrFiles, s.files)
	s.Int(attrBytes, s.bytes)
	s.over(err)
}

// over ends the stretch.
func (s *stretch) over(err error) {
	if err != nil {
		s.Fail()
	}
	s.End()
}
