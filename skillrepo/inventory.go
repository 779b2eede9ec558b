package skillrepo

import (
	"context"
	"fmt"
)

// An Inventory is everything known about the skills, in the shape that
// "skills list --json" prints.
type Inventory struct {
	Skills      []SkillInfo  `json:"skills"`      // by name
	Diagnostics []Diagnostic `json:"diagnostics"` // what was not loaded
}

// A SkillInfo is one skill of an Inventory.
type SkillInfo struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Dir         string   `json:"dir"`
	Root        string   `json:"root"`
	Trust       string   `json:"trust"`  // trusted or discovered
	Digest      string   `json:"digest"` // sha256:<hex>
	Files       int      `json:"files"`
	Bytes       int64    `json:"bytes"`
	Published   bool     `json:"published"`
	Diagnostics []string `json:"diagnostics"` // of its front matter and its files
}

// Inventory looks at the disk and describes every skill, files and digests
// included. A skill that vanishes meanwhile is left out.
func (r *Repo) Inventory(ctx context.Context) (Inventory, error) {
	inv := Inventory{Skills: []SkillInfo{}, Diagnostics: []Diagnostic{}}
	if err := r.Refresh(ctx); err != nil {
		return inv, err
	}
	snap := r.snap.Load()
	uris := uriPaths(snap.skills)
	for _, s := range snap.skills {
		m, err := s.Manifest(ctx)
		if ctx.Err() != nil {
			return inv, ctx.Err()
		}
		if err == nil {
			inv.Skills = append(inv.Skills, s.info(m, uris[s] != "" && s.strict && m.publishable()))
		}
	}
	inv.Diagnostics = append(inv.Diagnostics, snap.diags...)
	return inv, nil
}

func (s *Skill) info(m *Manifest, published bool) SkillInfo {
	i := SkillInfo{
		Name: s.Name, Description: s.Description, Dir: s.Dir, Root: s.Root, Trust: "discovered",
		Digest: m.Digest, Files: len(m.Files), Bytes: m.Bytes, Published: published, Diagnostics: []string{},
	}
	if s.Trusted {
		i.Trust = "trusted"
	}
	for _, list := range [][]Diagnostic{s.Diagnostics, s.bodyDiagnostics(), m.Diagnostics} {
		for _, d := range list {
			i.Diagnostics = append(i.Diagnostics, d.Message)
		}
	}
	return i
}

// A Diagnostic says what is odd about one directory.
type Diagnostic struct {
	Path    string `json:"path"`    // the directory, absolute
	Message string `json:"message"` // one sentence, no path of its own at the start
	Error   bool   `json:"-"`       // true: the skill was not loaded for it
}

func (d Diagnostic) String() string { return d.Path + ": " + d.Message }

// notes collects the warnings about one directory.
type notes struct {
	dir  string
	list []Diagnostic
}

func (n *notes) warn(format string, args ...any) {
	n.list = append(n.list, Diagnostic{Path: n.dir, Message: fmt.Sprintf(format, args...)})
}
