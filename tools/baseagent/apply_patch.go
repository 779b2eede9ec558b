package baseagent

import (
	"context"
	"errors"
	"io/fs"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/files"
	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/patch"
)

type applyPatchIn struct {
	Patch string `json:"patch" minLength:"1" doc:"The whole patch."`
}

const patchFormat = `Create, change, rename and delete several files in one step that happens whole or not at all. The patch:

*** Begin Patch
*** Add File: path          each line of the new file behind a +
*** Delete File: path
*** Update File: path       then, to rename: *** Move to: new path
*** End Patch

An update has chunks: a header @@, or @@ and a line of the file that stands above the place (a function, a class; several such headers narrow step by step), then lines that begin with a blank (context), - (removed) or + (added). Give three lines of context before and after each change, and @@ with a line where they do not tell the place. Chunks stand in file order. *** End of File below a chunk ties it to the end of the file. One patch per call.

*** Begin Patch
*** Update File: src/app.py
@@ def greet():
 def greet():
-    print("Hi")
+    print("Hello, world!")
*** Add File: notes/todo.md
+# To do
*** End Patch`

var applyPatch = tools.Define(tools.Info{
	Name: "apply_patch", Title: "Apply patch", Budget: budget, Largest: patch.MaxBytes,
	Effect: tools.Edits, Lane: tools.LaneFiles, View: tools.ViewDiff, NoOutputSchema: true,
	Description: patchFormat,
}, func(ctx context.Context, env *tools.Env, in applyPatchIn) (summary string, err error) {
	p, err := patch.Parse(in.Patch)
	if err != nil {
		return "", err
	}
	var plan *patch.Plan
	var shown []tools.Change
	err = env.Files.Transact(p.Paths(), func(tx *files.Tx) error {
		if plan, err = p.Plan(tree{tx}); err != nil {
			return err
		}
		if tools.ShowsChanges(ctx) {
			shown = changesOf(tx, p, plan)
		}
		return carryOut(tx, plan.Changes)
	})
	if err != nil {
		return "", asSpelled(err, plan)
	}
	tools.ShowChanges(ctx, shown...)
	return plan.Summary(), nil
})

// carryOut hands the changes of a plan to the transaction.
func carryOut(tx *files.Tx, changes []patch.Change) error {
	for _, c := range changes {
		var mode *fs.FileMode
		if c.SetMode {
			mode = &c.Mode
		}
		do := func() error { return tx.Write(c.Name, c.Data, mode) }
		if c.Remove {
			do = func() error { return tx.Remove(c.Name) }
		}
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// asSpelled names the path of an error as the patch does.
func asSpelled(err error, plan *patch.Plan) error {
	var at *sandbox.PathError
	if plan == nil || !errors.As(err, &at) {
		return err
	}
	for _, c := range plan.Changes {
		if c.Name == at.Path {
			at.Path = c.Path
			break
		}
	}
	return err
}

// A tree is the workspace as a transaction sees it.
type tree struct{ tx *files.Tx }

func (t tree) Lookup(path string, follow bool) (patch.Entry, error) {
	e, err := t.tx.Look(path, follow)
	if err != nil {
		return patch.Entry{}, err
	}
	found := patch.Entry{Name: e.Rel, Mode: e.Type | e.Perm, Size: e.Size}
	if !e.Exists {
		return found, fs.ErrNotExist
	}
	return found, nil
}

func (t tree) ReadFile(name string) ([]byte, error) { return t.tx.ReadFile(name) }
