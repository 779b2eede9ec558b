package baseagent

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"github.com/perstack-ai/perstack-base/tools"
	"github.com/perstack-ai/perstack-base/tools/internal/media"
)

type viewImageIn struct {
	Path string `json:"path" minLength:"1" nul:"no" doc:"Image file, told by content."`
}

// A picture is an image and the path by which it was asked for.
type picture struct {
	path  string
	image *media.Image
}

var viewImage = tools.Define(tools.Info{
	Name: "view_image", Title: "View image", Effect: tools.Reads, NoOutputSchema: true, Largest: media.MaxFileBytes,
	Description: "Show an image of the workspace (PNG, JPEG, GIF, WebP, BMP). Only images that the user speaks of, and none that was shown already: each costs about 1,000 tokens.",
}, func(_ context.Context, env *tools.Env, in viewImageIn) (picture, error) {
	file, err := env.Files.Open(in.Path)
	if err != nil {
		return picture{}, err
	}
	defer file.Close()
	image, err := media.View(file, file.Size())
	return picture{in.Path, image}, noImage(err, in.Path)
})

// noImage words why a file is not shown.
func noImage(err error, path string) error {
	var large *media.TooLargeError
	var not *media.UnsupportedError
	switch {
	case errors.As(err, &large):
		return tools.Errorf(fault.TooLarge, "", "File %s is too large (%s).", path, large.Limit)
	case errors.As(err, &not):
		is, hint := not.Detected, fmt.Sprintf("It is %s.", not.Detected)
		switch {
		case is.IsImage() || is == media.BMP:
			hint = fmt.Sprintf("It is %s, but does not decode.", is)
		case is == "" || strings.HasPrefix(string(is), "text/"):
			hint += " Use read_file."
		}
		return tools.Errorf(fault.UnsupportedType, hint, "%s is not a supported image (PNG, JPEG, GIF, WebP, BMP).", path)
	}
	return err
}

// result is a line of text, then the image.
func (p picture) result() *mcp.CallToolResult {
	i := p.image
	size := fmt.Sprintf("%dx%d", i.Width, i.Height)
	if i.Resized() {
		size += fmt.Sprintf(", resized to %dx%d", i.SentWidth, i.SentHeight)
	}
	result := tools.Text(fmt.Sprintf("attached local image: %s (%s)", p.path, size))
	data := base64.StdEncoding.EncodeToString(i.Data)
	result.Content = append(result.Content, mcp.ImageContent{Type: mcp.ContentTypeImage, MIMEType: string(i.Type), Data: data})
	return result
}
