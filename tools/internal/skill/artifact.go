package skill

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox/scratch"
	"github.com/perstack-ai/perstack-base/tools/internal/media"
)

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
	refs := []string{ref}
	if decoded, err := url.PathUnescape(ref); err == nil && decoded != ref {
		refs = []string{decoded, ref}
	}
	for _, ref := range refs {
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
