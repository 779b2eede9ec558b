package skillrepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"gopkg.in/yaml.v3"

	"github.com/perstack-ai/perstack-base/skillrepo/internal/front"
)

// A Report is the verdict of strict validation: valid without errors.
type Report struct {
	Dir      string   `json:"dir"` // as it was given
	Errors   []string `json:"errors"`
	Warnings []string `json:"warnings"` // what lenient loading finds odd; never part of the verdict
	notes    []string
}

// Notes says of unexpected fields which are extensions that this server reads, so
// that the error about them is not taken for a spelling mistake.
func (r Report) Notes() []string { return r.notes }

const maxCompatibility = 500 // code points

var strictKeys = []string{"allowed-tools", "compatibility", "description", "license", "metadata", "name"}

// Validate checks one skill directory, or its SKILL.md, by the published rules, in
// their words and order. dir's FS, Path and Dir say where it is; given is how the
// messages call it.
func Validate(ctx context.Context, dir Root, given string) Report {
	rep := Report{Dir: given, Errors: []string{}, Warnings: []string{}}
	t, at, err := dir.open()
	if err != nil {
		rep.Errors = append(rep.Errors, err.Error())
		return rep
	}
	at = skillDir(t, at)
	m, problem := readStrictly(t, at, given)
	if problem == "" {
		rep.Errors = append(rep.Errors, slices.Concat(unexpectedKeys(m), strictNameErrors(m, path.Base(filepath.ToSlash(t.abs(at)))),
			strictDescription(m), strictCompatibility(m))...)
		rep.notes = extensionNotes(m)
	} else {
		rep.Errors = append(rep.Errors, problem)
	}
	rep.Warnings = append(rep.Warnings, lenientWarnings(ctx, t, at)...)
	return rep
}

// readStrictly reads the front matter in the directory at a path of the tree. A
// problem stands for it.
func readStrictly(t tree, at, given string) (m *yaml.Node, problem string) {
	real, info, err := t.resolve(".", at)
	switch {
	case err != nil:
		return nil, "Path does not exist: " + given
	case !info.IsDir():
		return nil, "Not a directory: " + given
	}
	file, ok := strictFile(t, real)
	if !ok {
		return nil, "Missing required file: SKILL.md"
	}
	return strictMapping(t, file)
}

// strictFile finds SKILL.md, else skill.md, in exactly that spelling.
func strictFile(t tree, dir string) (file string, ok bool) {
	entries, _, err := t.readDir(dir)
	if err != nil {
		return "", false
	}
	for _, name := range []string{"SKILL.md", "skill.md"} {
		if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == name }) {
			continue
		}
		file, info, err := t.resolve(dir, name)
		return file, err == nil && info.Mode().IsRegular() && within(dir, file)
	}
	return "", false
}

// extensions are keys that the published rules refuse and this server understands.
var extensions = []string{"hooks", "paths", "shell"}

// extensionNotes names the extensions that a skill uses.
func extensionNotes(m *yaml.Node) (messages []string) {
	for _, key := range extensions {
		if front.Get(m, key) != nil {
			messages = append(messages, key+" is an extension: perstack-base and Echo Agent read it, the published rules do not have it")
		}
	}
	return messages
}

func unexpectedKeys(m *yaml.Node) []string {
	var extra []string
	for key := range front.Pairs(m) {
		if !slices.Contains(strictKeys, key) {
			extra = append(extra, key)
		}
	}
	if extra == nil {
		return nil
	}
	slices.Sort(extra)
	return []string{fmt.Sprintf("Unexpected fields in frontmatter: %s. Only ['%s'] are allowed.",
		strings.Join(extra, ", "), strings.Join(strictKeys, "', '"))}
}

func strictNameErrors(m *yaml.Node, dirName string) []string {
	v := front.Get(m, "name")
	if v == nil {
		return []string{"Missing required field in frontmatter: name"}
	}
	name, _ := front.Text(v)
	if name == "" {
		return []string{"Field 'name' must be a non-empty string"}
	}
	return nameErrors(norm.NFKC.String(name), dirName)
}

func strictDescription(m *yaml.Node) []string {
	v := front.Get(m, "description")
	if v == nil {
		return []string{"Missing required field in frontmatter: description"}
	}
	if s, _ := front.Text(v); s == "" {
		return []string{"Field 'description' must be a non-empty string"}
	}
	if k := utf8.RuneCountInString(v.Value); k > maxDescription {
		return []string{fmt.Sprintf("Description exceeds %d character limit (%d chars)", maxDescription, k)}
	}
	return nil
}

func strictCompatibility(m *yaml.Node) []string {
	v := front.Get(m, "compatibility")
	if v == nil {
		return nil
	}
	if v.Kind != yaml.ScalarNode {
		return []string{"Field 'compatibility' must be a string"}
	}
	if k := utf8.RuneCountInString(v.Value); k > maxCompatibility {
		return []string{fmt.Sprintf("Compatibility exceeds %d character limit (%d chars)", maxCompatibility, k)}
	}
	return nil
}

// lenientWarnings is what loading the directory finds odd about it.
func lenientWarnings(ctx context.Context, t tree, at string) (messages []string) {
	skill, found, err := loadDir(ctx, t, at)
	if err != nil {
		return nil
	}
	if skill != nil {
		found = slices.Concat(skill.Diagnostics, skill.bodyDiagnostics())
		if list, err := skill.Files(ctx); err == nil {
			found = append(found, list.Diagnostics...)
		}
	}
	for _, d := range found {
		messages = append(messages, d.Message)
	}
	return messages
}

// strictMapping reads the front matter as the reference does, in which it ends at
// the next --- wherever that stands. A problem stands for the mapping.
func strictMapping(t tree, file string) (m *yaml.Node, problem string) {
	raw, err := readPath(t, file, 2*front.MaxFrontmatter+front.MaxBody)
	if err != nil {
		return nil, plainError("SKILL.md cannot be read", err).Error()
	}
	if !utf8.Valid(raw) {
		return nil, "SKILL.md is not valid UTF-8"
	}
	rest, ok := strings.CutPrefix(string(front.ToLF(raw)), "---")
	if !ok {
		return nil, "SKILL.md must start with YAML frontmatter (---)"
	}
	text, _, ok := strings.Cut(rest, "---")
	if !ok {
		return nil, "SKILL.md frontmatter not properly closed with ---"
	}
	root, more, err := front.Parse(text)
	if err == nil && more {
		err = errors.New("more than one document")
	}
	if err == nil {
		err = front.Refused(root, 0)
	}
	if err != nil {
		return nil, "Invalid YAML in frontmatter: " + err.Error()
	}
	if root == nil || root.Kind != yaml.MappingNode {
		return nil, "SKILL.md frontmatter must be a YAML mapping"
	}
	return root, ""
}
