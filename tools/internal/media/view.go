package media

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"runtime/debug"

	"github.com/perstack-ai/perstack-base/sandbox/fault"
	"golang.org/x/image/bmp"
	"golang.org/x/image/draw"
	"golang.org/x/image/webp"
)

// The bounds of an image on its way to a model.
const (
	MaxWidth      = 2048      // pixels; more is scaled down
	MaxHeight     = 768       // pixels
	MaxFileBytes  = 15 << 20  // of the file
	MaxPixels     = 50e6      // by the header; see also MaxDecodedBytes
	maxSentBytes  = 3_750_000 // of what is sent: 5 MB in base64, what model APIs take
	jpegQuality   = 85
	decodesAtOnce = 1 // so that a burst of calls costs the memory of one image
)

// An Image is ready to be sent.
type Image struct {
	Type          Type
	Data          []byte
	Width, Height int // of the file's image, upright
	SentWidth     int // of Data
	SentHeight    int
}

// Resized tells whether Data has another size than the file.
func (i *Image) Resized() bool { return i.Width != i.SentWidth || i.Height != i.SentHeight }

// An UnsupportedError is a file that is not an image of a type taken here, or one
// that does not decode.
type UnsupportedError struct{ Detected Type }

func (e *UnsupportedError) Error() string {
	return "not a supported image (PNG, JPEG, GIF, WebP, BMP), but " + e.Detected.String()
}
func (*UnsupportedError) Code() fault.Code { return fault.UnsupportedType }

// A TooLargeError is an image over a bound, which Limit names in words.
type TooLargeError struct{ Limit string }

func (e *TooLargeError) Error() string  { return "too large (" + e.Limit + ")" }
func (*TooLargeError) Code() fault.Code { return fault.TooLarge }

var decoding = make(chan struct{}, decodesAtOnce)

// View reads an image of size bytes, decodes it to be sure that it is one, and
// returns it upright, at most MaxWidth x MaxHeight. Errors are *UnsupportedError,
// *TooLargeError, or the reader's.
func View(file io.ReaderAt, size int64) (*Image, error) {
	typ, err := Detect(file)
	if err != nil {
		return nil, err
	}
	if !typ.IsImage() && typ != BMP {
		return nil, &UnsupportedError{typ}
	}
	if size > MaxFileBytes {
		return nil, &TooLargeError{fmt.Sprintf("at most %d MiB", MaxFileBytes>>20)}
	}
	decoding <- struct{}{}
	defer func() { <-decoding }()
	data, err := io.ReadAll(io.NewSectionReader(file, 0, size))
	if err != nil {
		return nil, err
	}
	return view(typ, data)
}

func view(typ Type, data []byte) (*Image, error) {
	width, height, model, err := header(typ, data)
	if err != nil || width <= 0 || height <= 0 {
		return nil, &UnsupportedError{typ}
	}
	if float64(width)*float64(height) > MaxPixels {
		return nil, &TooLargeError{fmt.Sprintf("at most %d million pixels", int(MaxPixels/1e6))}
	}
	if typ == WebP && fits(width, height, len(data)) && isAnimation(data) {
		// Models take it as it is; there is no decoder to hold it against.
		return &Image{Type: WebP, Data: data, Width: width, Height: height, SentWidth: width, SentHeight: height}, nil
	}
	need := decodedBytes(typ, data, model, width, height)
	if need > MaxDecodedBytes {
		return nil, &TooLargeError{fmt.Sprintf("at most %d MiB when decoded; this one takes %.0f", MaxDecodedBytes>>20, need/(1<<20))}
	}
	if need > collectFrom {
		defer debug.FreeOSMemory()
	}
	pixels, err := decode(typ, data)
	if err != nil {
		return nil, &UnsupportedError{typ}
	}
	turn := orientation(1)
	if typ == JPEG {
		turn = exifOrientation(data)
	}
	if turn.swapsSides() {
		width, height = height, width
	}
	out := &Image{Type: typ, Data: data, Width: width, Height: height}
	out.SentWidth, out.SentHeight = fit(width, height)
	if out.Resized() {
		w, h := out.SentWidth, out.SentHeight
		if turn.swapsSides() {
			w, h = h, w
		}
		pixels = reduce(pixels, w, h)
	}
	if err := out.encode(pixels, turn); err != nil {
		return nil, err
	}
	return out, nil
}

// collectFrom is how large a decoded picture is given back to the system at once:
// the next one must not come on top of it.
const collectFrom = 32 << 20

// fits tells whether an image can be sent without scaling.
func fits(width, height, bytes int) bool {
	return width <= MaxWidth && height <= MaxHeight && bytes <= maxSentBytes
}

// encode sets what is sent: the file itself where it can be, else the scaled
// and upright picture.
func (i *Image) encode(pixels image.Image, turn orientation) error {
	scaled := i.Resized()
	if scaled || i.Type == BMP {
		picture := scale(turn.apply(pixels), i.SentWidth, i.SentHeight)
		var b bytes.Buffer
		if i.Type != JPEG {
			i.Type = PNG
		}
		if err := write(&b, i.Type, picture); err != nil {
			return err
		}
		i.Data = b.Bytes()
	}
	if len(i.Data) > maxSentBytes {
		return i.shrink(turn.apply(pixels))
	}
	return nil
}

// shrink makes a JPEG on white, halved in size until it can be sent.
func (i *Image) shrink(pixels image.Image) error {
	for ; ; i.SentWidth, i.SentHeight = max(1, i.SentWidth/2), max(1, i.SentHeight/2) {
		white := image.NewRGBA(image.Rect(0, 0, i.SentWidth, i.SentHeight))
		draw.Draw(white, white.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src)
		draw.CatmullRom.Scale(white, white.Bounds(), pixels, pixels.Bounds(), draw.Over, nil)
		var b bytes.Buffer
		if err := write(&b, JPEG, white); err != nil {
			return err
		}
		if b.Len() <= maxSentBytes || i.SentWidth*i.SentHeight == 1 {
			i.Type, i.Data = JPEG, b.Bytes()
			return nil
		}
	}
}

func write(w io.Writer, typ Type, picture image.Image) error {
	if typ == JPEG {
		return jpeg.Encode(w, picture, &jpeg.Options{Quality: jpegQuality})
	}
	return png.Encode(w, picture)
}

// fit returns the size that keeps the ratio and lies within the bounds; nothing
// is enlarged.
func fit(width, height int) (int, int) {
	s := min(float64(MaxWidth)/float64(width), float64(MaxHeight)/float64(height))
	if s >= 1 {
		return width, height
	}
	side := func(n int) int { return max(1, int(float64(n)*s+0.5)) }
	return side(width), side(height)
}

func scale(picture image.Image, width, height int) image.Image {
	if picture.Bounds().Dx() == width && picture.Bounds().Dy() == height {
		return picture
	}
	out := image.NewNRGBA(image.Rect(0, 0, width, height))
	draw.CatmullRom.Scale(out, out.Bounds(), picture, picture.Bounds(), draw.Src, nil)
	return out
}

// header returns the size that the file claims, without decoding it.
func header(typ Type, data []byte) (width, height int, model color.Model, err error) {
	if w, ok := parseWebP(data); ok && typ == WebP {
		return w.width, w.height, nil, nil
	}
	configs := map[Type]func(io.Reader) (image.Config, error){
		PNG: png.DecodeConfig, JPEG: jpeg.DecodeConfig, GIF: gif.DecodeConfig, WebP: webp.DecodeConfig, BMP: bmp.DecodeConfig,
	}
	c, err := configs[typ](bytes.NewReader(data))
	return c.Width, c.Height, c.ColorModel, err
}

// decode returns the picture, the first frame of an animation.
func decode(typ Type, data []byte) (image.Image, error) {
	r := bytes.NewReader(data)
	switch typ {
	case PNG:
		return png.Decode(r)
	case JPEG:
		return jpeg.Decode(r)
	case WebP:
		return decodeWebP(data)
	case BMP:
		return bmp.Decode(r)
	}
	return gifFrame(data)
}

func isAnimation(data []byte) bool {
	w, ok := parseWebP(data)
	return ok && w.animated
}

// decodeWebP decodes a WebP, of an animation the first frame on its whole canvas.
func decodeWebP(data []byte) (image.Image, error) {
	w, ok := parseWebP(data)
	if !ok {
		return webp.Decode(bytes.NewReader(data))
	}
	if !w.animated {
		if err := checkPicture(w.chunks, w.width, w.height); err != nil {
			return nil, err
		}
		return webp.Decode(bytes.NewReader(data))
	}
	frame, err := w.firstFrame()
	if err != nil {
		return nil, err
	}
	picture, err := webp.Decode(bytes.NewReader(frame.still))
	if err != nil {
		return nil, err
	}
	at := picture.Bounds().Sub(picture.Bounds().Min).Add(image.Pt(frame.x, frame.y))
	return onCanvas(picture, at, w.width, w.height), nil
}

// gifFrame decodes the first frame of a GIF onto its whole screen, of which a
// frame may cover only a part.
func gifFrame(data []byte) (image.Image, error) {
	config, err := gif.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	frame, err := gif.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return onCanvas(frame, frame.Bounds(), config.Width, config.Height), nil
}

// onCanvas puts a frame of an animation where it stands on the whole picture.
func onCanvas(frame image.Image, at image.Rectangle, width, height int) image.Image {
	canvas := image.Rect(0, 0, width, height)
	if frame.Bounds() == canvas {
		return frame
	}
	whole := image.NewNRGBA(canvas)
	draw.Draw(whole, at, frame, frame.Bounds().Min, draw.Src)
	return whole
}
