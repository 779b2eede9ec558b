package skillrepo

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
)

// A Published skill is one that a strict host accepts. It has a URI path, which
// is not the directory it lies in.
type Published struct {
	*Skill
	URIPath string
	files   *Listing
}

// An Entry is a published skill as the MCP Skills extension lists it.
type Entry struct {
	URI         string          `json:"uri"` // of its SKILL.md
	Frontmatter json.RawMessage `json:"frontmatter"`
	Resources   []EntryResource `json:"resources"`
}

// An EntryResource is one file of an Entry.
type EntryResource struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"` // sha256:<hex> of the bytes served
	Size   int64  `json:"size"`
}

// ErrUnknownURI: nothing that is published has the URI.
var ErrUnknownURI = errors.New("no published skill has this resource")

// URI is the URI of the skill's SKILL.md.
func (p *Published) URI() string { return p.FileURI(p.file) }

// FileURI is the URI of one of its files or directories.
func (p *Published) FileURI(rel string) string { return EncodeURI(p.URIPath + "/" + rel) }

// Entry reads what the extension tells of the skill, from the disk as it is now.
func (p *Published) Entry(ctx context.Context) (*Entry, error) {
	m, err := p.Manifest(ctx)
	if err != nil {
		return nil, err
	}
	e := &Entry{URI: p.URI(), Frontmatter: p.Frontmatter, Resources: []EntryResource{}}
	for _, f := range m.Files {
		e.Resources = append(e.Resources, EntryResource{URI: p.FileURI(f.Path), Digest: f.Digest, Size: f.Size})
	}
	return e, nil
}

// Published looks at the disk and returns the published skills by URI.
func (r *Repo) Published(ctx context.Context) ([]*Published, error) {
	if err := r.Refresh(ctx); err != nil {
		return nil, err
	}
	var all []*Published
	for s, uriPath := range uriPaths(r.List()) {
		p, err := publish(ctx, s, uriPath)
		if err != nil {
			return nil, err
		}
		if p != nil {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b *Published) int { return strings.Compare(a.URI(), b.URI()) })
	return all, nil
}

// publish returns nil for a skill that is not to be published. The only error is
// the context's: a skill that just vanished is not published.
func publish(ctx context.Context, s *Skill, uriPath string) (*Published, error) {
	if uriPath == "" || !s.strict {
		return nil, nil
	}
	files, err := s.Files(ctx)
	if err != nil || !files.publishable() {
		return nil, ctx.Err()
	}
	return &Published{s, uriPath, files}, nil
}

// A Target is what a URI names: a file, or a directory when File is nil.
type Target struct {
	*Published
	File *File
	Dir  string // relative to the skill directory, "" for that itself
}

// IsSkill reports whether the target is the SKILL.md of its skill.
func (t *Target) IsSkill() bool { return t.File != nil && t.File.Path == t.SkillFile() }

// Lookup looks at the disk and finds what a URI names.
func (r *Repo) Lookup(ctx context.Context, uri string) (*Target, error) {
	candidates := DecodeURI(uri)
	if candidates == nil {
		return nil, ErrUnknownURI
	}
	if err := r.Refresh(ctx); err != nil {
		return nil, err
	}
	paths := uriPaths(r.List())
	for _, p := range candidates {
		t, err := lookup(ctx, paths, p)
		if t != nil || err != nil {
			return t, err
		}
	}
	return nil, ErrUnknownURI
}

// lookup tries the skills that the path may lie in, nested ones before those that
// enclose them: the file is the same, but SKILL.md should name its own skill.
func lookup(ctx context.Context, paths map[*Skill]string, p string) (*Target, error) {
	var holders []*Skill
	for s, uriPath := range paths {
		if uriPath != "" && strings.HasPrefix(p+"/", uriPath+"/") {
			holders = append(holders, s)
		}
	}
	slices.SortFunc(holders, func(a, b *Skill) int { return len(paths[b]) - len(paths[a]) })
	for _, s := range holders {
		pub, err := publish(ctx, s, paths[s])
		if err != nil {
			return nil, err
		}
		if pub == nil {
			continue
		}
		if t := pub.target(strings.TrimPrefix(p[len(paths[s]):], "/")); t != nil {
			return t, nil
		}
	}
	return nil, nil
}

func (p *Published) target(rel string) *Target {
	if f, ok := p.files.find(rel); ok {
		return &Target{Published: p, File: &f}
	}
	if _, ok := slices.BinarySearch(p.files.Dirs, rel); ok || rel == "" {
		return &Target{Published: p, Dir: rel}
	}
	return nil
}

func slashedDir(s *Skill) string { return filepath.ToSlash(s.RealDir) }
