package perstack

import (
	"context"

	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/media"
)

// maxPDFBytes is what model APIs take of a PDF.
const maxPDFBytes = 30 << 20

type readPdfFileIn struct {
	Path string `json:"path" minLength:"1" nul:"no" doc:"PDF file, told by content."`
}

var readPdfFile = tools.Define(tools.Info{
	Name: "readPdfFile", Title: "Read PDF file", Effect: tools.Reads, Largest: maxPDFBytes,
	Description: "Check that a file is a PDF and name it, so that the runtime can show it.",
}, func(_ context.Context, env *tools.Env, in readPdfFileIn) (fileOut, error) {
	out, err := checkFile(env, in.Path, maxPDFBytes, func(t media.Type) bool { return t == media.PDF })
	if unsupported(err) {
		return out, wrongType("a PDF file", in.Path, out.MimeType)
	}
	return out, err
})
