package baseagent

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/perstack-ai/perstack-base/sandbox/files"
	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/patch"
)

// maxRead bounds what is read of all files of a patch to show how they were, in bytes.
const maxRead = 2 * tools.MaxCompared

// A reader reads how files are before a patch changes them, within bounds.
type reader struct {
	tx   *files.Tx
	left int64 // bytes that may still be read
}

// changesOf compares what a plan writes and removes with what is there, before it is
// carried out.
func changesOf(tx *files.Tx, p *patch.Patch, plan *patch.Plan) []tools.Change {
	r := &reader{tx, maxRead}
	moved := map[string]string{} // path after -> path before
	for _, s := range p.Sections {
		if s.MoveTo != "" {
			moved[s.MoveTo] = s.Path
		}
	}
	removed := map[string]patch.Change{} // by path
	for _, c := range plan.Changes {
		if c.Remove {
			removed[c.Path] = c
		}
	}
	var shown, gone []tools.Change
	for _, c := range plan.Changes {
		if c.Remove {
			continue
		}
		change := r.before(c)
		if link, ok := removed[c.Path]; ok { // it becomes a file
			delete(removed, c.Path)
			change = r.before(link)
		} else if source, ok := removed[moved[c.Path]]; ok && change.From == "" {
			delete(removed, source.Path)
			change = r.before(source)
		}
		change.To, change.New = c.Path, c.Data
		shown = append(shown, change)
	}
	for _, c := range plan.Changes {
		if _, left := removed[c.Path]; c.Remove && left {
			gone = append(gone, r.before(c))
		}
	}
	return append(shown, gone...)
}

// before is what stands where c writes or what it removes.
func (r *reader) before(c patch.Change) tools.Change {
	e, err := r.tx.Look(c.Name, !c.Remove)
	if err == nil && !e.Exists {
		err = fs.ErrNotExist
	}
	change := tools.Change{From: c.Path}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		change.From = ""
		return change
	case err == nil && e.Type&fs.ModeSymlink != 0:
		change.Omitted = "was a symbolic link"
		return change
	case err == nil && e.Size > tools.MaxCompared:
		change.Omitted = fmt.Sprintf("has %d bytes", e.Size)
		return change
	case e.Size > r.left:
		change.Omitted = "is one of too many"
		return change
	}
	r.left -= e.Size
	if change.Old, err = r.tx.ReadFile(c.Name); err != nil {
		change.Omitted = "could not be read"
	}
	return change
}
