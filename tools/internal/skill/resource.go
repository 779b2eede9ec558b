package skill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/sandbox/scratch"
	"github.com/perstack-ai/perstack-base/skillrepo"
	"github.com/perstack-ai/perstack-base/tools/internal/media"
)

// maxResourceBytes bounds a file that is read for a model.
const maxResourceBytes = 1 << 20

// A Resource is a file of a skill as a model is shown it.
type Resource struct {
	Text string // the tagged content, or a tag that tells what it is
	Blob []byte // the content, when it is not text
	URI  string
	MIME string
}

// Resource reads a file of an activated skill.
func (s *Session) Resource(ctx context.Context, name, p string) (*Resource, error) {
	if slices.Contains(strings.Split(strings.ReplaceAll(p, `\`, "/"), "/"), "..") {
		return nil, errorf(fault.BadInput, "Path traversal ('..') is not allowed in resource paths")
	}
	sk, err := s.admitted(ctx, name, "read_skill_resource")
	if err != nil {
		return nil, err
	}
	f, err := sk.Resource(p)
	switch {
	case errors.Is(err, skillrepo.ErrOutside):
		return nil, errorf(fault.OutsideWorkspace, "Resolved path escapes the skill directory")
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, skillrepo.ErrDirectory):
		return nil, errorf(fault.NotFound, "Resource file not found: %s (in skill '%s')", p, name)
	case err != nil:
		return nil, errorf(fault.UnsupportedType, "Failed to read '%s' in skill '%s': %v", p, name, innermost(err))
	case f.Size > maxResourceBytes:
		return nil, errorf(fault.TooLarge, "Resource file '%s' exceeds maximum size (%d bytes, limit: %d bytes)", p, f.Size, maxResourceBytes)
	}
	content, err := sk.ReadFile(f, maxResourceBytes)
	if err != nil {
		return nil, errorf(fault.UnsupportedType, "Failed to read '%s' in skill '%s': %v", p, name, innermost(err))
	}
	r := &Resource{URI: skillrepo.EncodeURI(name + "/" + f.Path), MIME: skillrepo.MIMEType(f.Path)}
	tag := openTag(name, p)
	if !utf8.Valid(content) {
		r.Text = fmt.Sprintf("%s mime_type=\"%s\" bytes=\"%d\"/>", strings.TrimSuffix(tag, ">"), Escape(r.MIME), len(content))
		r.Blob = content
		return r, nil
	}
	text := string(content)
	if !sk.Trusted {
		text = Guard(text)
	}
	r.Text = tag + "\n" + text + "\n</skill_resource>"
	return r, nil
}

// ArtifactScheme begins the URI of every artifact: artifact://NAME[@VERSION].
const ArtifactScheme = "artifact://"

// ArtifactURI is the URI of one version of an artifact.
func ArtifactURI(name string, version int) string {
	segments := strings.Split(name, "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return fmt.Sprintf("%s%s@%d", ArtifactScheme, strings.Join(segments, "/"), version)
}

// maxArtifactBytes bounds what is read of an artifact at once: a message carries no more.
const maxArtifactBytes = 8 << 20

// ErrNoArtifact: the URI names nothing that was saved.
var ErrNoArtifact = scratch.ErrNoArtifact

// Artifact returns the content and the type of what a URI names; its name may be
// percent-encoded or not.
func (e *Engine) Artifact(uri string) (content []byte, mime string, err error) {
	ref, ok := strings.CutPrefix(uri, ArtifactScheme)
	for _, ref := range slices.Backward(spellings(ref)) {
		name, version := cutVersion(ref)
		if !ok || !goodName(name) {
			continue
		}
		file, _, err := e.Workdirs.Artifacts().Open(name, version)
		if errors.Is(err, ErrNoArtifact) {
			continue
		}
		if err != nil {
			return nil, "", err
		}
		defer file.Close()
		content, err = io.ReadAll(io.LimitReader(file, maxArtifactBytes+1))
		if err == nil && len(content) > maxArtifactBytes {
			err = fmt.Errorf("the artifact has more than %d bytes", maxArtifactBytes)
		}
		return content, string(media.DetectBytes(content[:min(len(content), 3072)])), err
	}
	return nil, "", ErrNoArtifact
}
