package perstack

import (
	"context"

	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/media"
)

// maxImageBytes is what model APIs take of an image.
const maxImageBytes = 15 << 20

type readImageFileIn struct {
	Path string `json:"path" minLength:"1" nul:"no" doc:"Image file, told by content."`
}

// fileOut names a checked file; the client that shows it opens it.
type fileOut struct {
	Path     string     `json:"path" doc:"Absolute path of the file."`
	MimeType media.Type `json:"mimeType" doc:"Type of its content, as in image/png."`
	Size     int64      `json:"size" doc:"Its size in bytes."`
}

var readImageFile = tools.Define(tools.Info{
	Name: "readImageFile", Title: "Read image file", Effect: tools.Reads, Largest: maxImageBytes,
	Description: "Check that a file is an image (PNG, JPEG, GIF, WebP) and name it, so that the runtime can show it.",
}, func(_ context.Context, env *tools.Env, in readImageFileIn) (fileOut, error) {
	out, err := checkFile(env, in.Path, maxImageBytes, media.Type.IsImage)
	if unsupported(err) {
		return out, wrongType("a supported image", in.Path, out.MimeType)
	}
	return out, err
})
