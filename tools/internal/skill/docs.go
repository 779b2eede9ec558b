package skill

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/sandbox/process/capture"
	"github.com/perstack-ai/perstack-base/skillrepo"
	"github.com/perstack-ai/perstack-base/tools/internal/outcut"
)

// A selection is the docs of one skill that a session wants to see.
type selection struct {
	all   bool
	paths []string // in order of first mention; without meaning when all
}

// isDoc tells docs, files for a model to read, from the rest of a skill.
func isDoc(file string) bool {
	ext := strings.ToLower(path.Ext(file))
	return (ext == ".md" || ext == ".txt") && !strings.EqualFold(path.Base(file), "SKILL.md")
}

// docs finds a skill and its docs, in byte order.
func (e *Engine) docs(ctx context.Context, name string) (*skillrepo.Skill, []skillrepo.File, error) {
	sk, err := e.find(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	list, err := sk.Files(ctx)
	if err != nil {
		return nil, nil, err
	}
	return sk, slices.DeleteFunc(list.Files, func(f skillrepo.File) bool { return !isDoc(f.Path) }), nil
}

// paths are the selected docs that exist.
func (sel selection) of(docs []skillrepo.File) []skillrepo.File {
	if sel.all {
		return docs
	}
	var chosen []skillrepo.File
	for _, p := range sel.paths {
		if i := indexOf(docs, p); i >= 0 {
			chosen = append(chosen, docs[i])
		}
	}
	return chosen
}

func indexOf(files []skillrepo.File, p string) int {
	return slices.IndexFunc(files, func(f skillrepo.File) bool { return f.Path == p })
}

// sortOut splits names into docs and others, each once.
func sortOut(names []string, docs []skillrepo.File) (known, missing []string) {
	for _, name := range names {
		p := strings.TrimPrefix(path.Clean(strings.ReplaceAll(name, `\`, "/")), "./")
		switch {
		case indexOf(docs, p) >= 0:
			if !slices.Contains(known, p) {
				known = append(known, p)
			}
		case !slices.Contains(missing, name):
			missing = append(missing, name)
		}
	}
	return known, missing
}

// Docs lists the docs of a skill in byte order.
func (s *Session) Docs(ctx context.Context, name string) ([]string, error) {
	_, docs, err := s.engine.docs(ctx, name)
	paths := []string{}
	for _, f := range docs {
		paths = append(paths, f.Path)
	}
	return paths, err
}

// Load opens a skill and returns its rendering, followed by the selected docs, in
// at most budget bytes. Docs that are given, or all, become the selection.
func (s *Session) Load(ctx context.Context, name string, names []string, all bool, budget int) (string, error) {
	sk, err := s.engine.find(ctx, name)
	if err != nil {
		return "", err
	}
	text, err := s.open(ctx, sk, nil)
	if err != nil {
		return "", err
	}
	_, docs, err := s.engine.docs(ctx, name)
	if err != nil {
		return "", err
	}
	known, missing := sortOut(names, docs)
	s.mu.Lock()
	switch {
	case all:
		s.docs[name] = selection{all: true}
	case len(names) > 0:
		s.docs[name] = selection{paths: known}
	}
	sel := s.docs[name]
	s.mu.Unlock()
	note := ""
	if len(missing) > 0 && !all {
		note = "\n\nDocs not found: " + strings.Join(missing, ", ")
	}
	return fit(sk, text, sel.of(docs), note, budget), nil
}

// fit joins a rendering, docs and a note within budget bytes; what does not fit
// is named in a last line.
func fit(sk *skillrepo.Skill, text string, docs []skillrepo.File, note string, budget int) string {
	room := budget - len(note)
	if len(text) > room {
		tail := fmt.Sprintf("\n[cut at %d bytes; the whole text is %s]", budget, skillrepo.EncodeURI(sk.Name+"/"+sk.SkillFile()))
		return outcut.Prefix(text, max(0, room-len(tail))) + tail + note
	}
	parts := docBlocks(sk, docs)
	if whole := text + joinBlocks(parts); len(whole) <= room {
		return whole + note
	}
	var cut []string
	for _, d := range docs {
		cut = append(cut, d.Path)
	}
	tail := func(names []string) string {
		return fmt.Sprintf("\n\nDocs cut at %d bytes: %s", budget, strings.Join(names, ", "))
	}
	if len(tail(cut)) > room-len(text) { // so many names do not fit themselves
		return text + outcut.Prefix(tail(cut), room-len(text)) + note
	}
	for i, part := range parts {
		if len(text)+2+len(part)+len(tail(cut[i:])) > room {
			text += clipDoc(sk, docs[i], part, room-len(text)-len(tail(cut[i:])))
			return text + tail(cut[i:]) + note
		}
		text += "\n\n" + part
	}
	return text + note
}

// clipDoc is as much of a doc's block as fits, closed; "" when hardly anything does.
func clipDoc(sk *skillrepo.Skill, doc skillrepo.File, block string, room int) string {
	const closing = "\n</skill_resource>"
	if least := len(openTag(sk.Name, doc.Path)) + len(closing) + 200; room-2 < least {
		return ""
	}
	return "\n\n" + outcut.Prefix(strings.TrimSuffix(block, closing), room-2-len(closing)) + closing
}

func joinBlocks(parts []string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString("\n\n" + p)
	}
	return b.String()
}

// maxDocBytes bounds one doc; a larger one is shown as far as that.
const maxDocBytes = 1 << 20

func docBlocks(sk *skillrepo.Skill, docs []skillrepo.File) []string {
	var parts []string
	for _, d := range docs {
		content, err := sk.ReadFile(d, maxDocBytes)
		text := capture.ValidText(content)
		if err != nil {
			text = "[" + err.Error() + "]"
		}
		if !sk.Trusted {
			text = Guard(text)
		}
		parts = append(parts, openTag(sk.Name, d.Path)+"\n"+text+"\n</skill_resource>")
	}
	return parts
}

func openTag(skill, file string) string {
	return fmt.Sprintf("<skill_resource skill=\"%s\" path=\"%s\">", Escape(skill), Escape(file))
}

// A Selected is the answer to a change of the selection.
type Selected struct {
	Skill          string   `json:"skill" doc:"The skill, as it was given."`
	Mode           string   `json:"mode" doc:"add, replace or clear."`
	IncludeAllDocs bool     `json:"include_all_docs" doc:"Whether all docs are selected."`
	SelectedDocs   []string `json:"selected_docs" doc:"The selection, in order."`
	MissingDocs    []string `json:"missing_docs,omitempty" doc:"Names that are no docs of the skill."`

	text string `json:"-"`
}

// Text is the docs that became selected by the change, "" for none.
func (s Selected) Text() string { return s.text }

// SelectModes are the ways in which a selection changes.
var SelectModes = []string{"add", "replace", "clear"}

// Select changes the selection of a skill's docs, loaded or not.
func (s *Session) Select(ctx context.Context, name string, names []string, all bool, mode string, budget int) (out Selected, err error) {
	given := mode
	mode = strings.ToLower(strings.TrimSpace(mode))
	if !slices.Contains(SelectModes, mode) {
		return out, errorf(fault.BadInput, "mode must be one of %s, not %q", strings.Join(SelectModes, ", "), outcut.Prefix(given, 100))
	}
	sk, docs, err := s.engine.docs(ctx, name)
	if err != nil {
		return out, err
	}
	known, missing := sortOut(names, docs)
	if len(names) > 0 && len(known) == 0 && !all && mode != "clear" {
		return out, &Error{Kind: fault.NotFound, Msg: "docs not found: " + strings.Join(missing, ", "), Way: "skill_list_docs names the docs of a skill."}
	}
	s.mu.Lock()
	before := s.docs[name]
	after := before.changed(known, all, mode)
	s.docs[name] = after
	s.mu.Unlock()
	out = Selected{Skill: name, Mode: mode, IncludeAllDocs: after.all, SelectedDocs: []string{}, MissingDocs: missing}
	if mode == "clear" || all {
		out.MissingDocs = nil
	}
	old := before.of(docs)
	fresh := after.of(docs)
	for _, d := range fresh {
		out.SelectedDocs = append(out.SelectedDocs, d.Path)
	}
	fresh = slices.DeleteFunc(slices.Clone(fresh), func(f skillrepo.File) bool { return indexOf(old, f.Path) >= 0 })
	if len(fresh) > 0 {
		out.text = strings.TrimPrefix(fit(sk, "", fresh, "", budget), "\n\n")
	}
	return out, nil
}

func (sel selection) changed(known []string, all bool, mode string) selection {
	switch {
	case mode == "clear":
		return selection{}
	case all:
		return selection{all: true}
	case mode == "replace":
		return selection{paths: known}
	case sel.all:
		return sel
	}
	paths := slices.Clone(sel.paths)
	for _, p := range known {
		if !slices.Contains(paths, p) {
			paths = append(paths, p)
		}
	}
	return selection{paths: paths}
}
