package perstack

import (
	"errors"
	"fmt"
	"strings"

	"github.com/perstack-ai/perstack-base/sandbox"
	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/media"
)

var errType = errors.New("not of an accepted type")

func unsupported(err error) bool { return errors.Is(err, errType) }

// checkFile names a file whose type accept takes and that has at most limit
// bytes; type comes before size.
func checkFile(env *tools.Env, path string, limit int64, accept func(media.Type) bool) (out fileOut, err error) {
	file, err := env.Files.Open(path)
	if err != nil {
		return out, err
	}
	defer file.Close()
	out = fileOut{Path: file.Path().Abs, Size: file.Size()}
	if out.MimeType, err = media.Detect(file); err != nil {
		return out, err
	}
	if !accept(out.MimeType) {
		return out, errType
	}
	if out.Size > limit {
		return out, &sandbox.TooLargeError{Path: path, Size: out.Size, Limit: limit}
	}
	return out, nil
}

// wrongType says what a file is instead of what was wanted, and which tool takes it.
func wrongType(wanted, path string, is media.Type) error {
	hint := fmt.Sprintf("It is %s.", is)
	switch {
	case is.IsImage():
		hint += " Use readImageFile."
	case is == media.PDF:
		hint += " Use readPdfFile."
	case is == "", strings.HasPrefix(string(is), "text/"):
		hint += " Use readTextFile."
	}
	return tools.Errorf(fault.UnsupportedType, hint, "File %s is not %s.", path, wanted)
}
