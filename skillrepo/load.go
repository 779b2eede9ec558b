package skillrepo

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
)

// Load reads the one skill in a directory, which may also be named by its SKILL.md,
// without looking below it. The skill is as trusted as the root.
func Load(ctx context.Context, dir Root) (*Skill, error) {
	t, at, err := dir.open()
	if err != nil {
		return nil, err
	}
	skill, diags, err := loadDir(ctx, t, skillDir(t, at))
	switch {
	case err != nil:
		return nil, plainError("the skill directory", err)
	case skill != nil:
		skill.Trusted = dir.Trusted
		return skill, nil
	case len(diags) > 0:
		return nil, errors.New(diags[0].Message)
	}
	return nil, plainError("SKILL.md", fs.ErrNotExist)
}

// skillDir is the directory that a path names, by itself or by the SKILL.md in it.
func skillDir(t tree, at string) string {
	if !strings.EqualFold(path.Base(at), "SKILL.md") {
		return at
	}
	if _, info, err := t.resolve(".", at); err != nil || !info.Mode().IsRegular() {
		return at
	}
	return path.Dir(at)
}

// loadDir reads the skill in the directory at a path of the tree: nil with the
// reasons, or without any when nothing there looks like a skill.
func loadDir(ctx context.Context, t tree, at string) (*Skill, []Diagnostic, error) {
	real, info, err := t.resolve(".", at)
	if err == nil && !info.IsDir() {
		err = errors.New("is not a directory")
	}
	if err != nil {
		return nil, nil, err
	}
	s := search{scan: newScan(ctx, &Repo{}, &snapshot{}), tree: t, root: Root{Dir: t.abs(at)}}
	s.startLoading()
	listed := s.list(t.abs(at), real)
	if e := skillFile(listed.entries); e != nil {
		s.skill(t.abs(at), real, e, listed.sig)
	}
	if err := s.finishLoading(); err != nil || len(s.found) == 0 {
		return nil, s.snap.diags, err
	}
	return s.found[0], nil, nil
}
