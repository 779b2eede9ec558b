package media

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"testing"

	"golang.org/x/image/bmp"

	"github.com/perstack-ai/perstack-base/e2e/testlevel"
)

const tinyWebP = "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA=="

func unbase64(t testing.TB, text string) []byte {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// picture is a gradient, red in the upper left corner.
func picture(w, h int) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.SetNRGBA(x, y, color.NRGBA{R: uint8(255 - 255*x/w), G: uint8(255 * y / h), B: 40, A: 255})
		}
	}
	return m
}

func encoded(t testing.TB, typ Type, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch typ {
	case PNG, JPEG:
		err = write(&b, typ, m)
	case GIF:
		err = gif.Encode(&b, m, nil)
	case BMP:
		err = bmp.Encode(&b, m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func viewBytes(data []byte) (*Image, error) {
	return View(bytes.NewReader(data), int64(len(data)))
}

func TestDetect(t *testing.T) {
	small := picture(2, 2)
	for name, c := range map[string]struct {
		data  []byte
		want  Type
		image bool
	}{
		"png":           {encoded(t, PNG, small), PNG, true},
		"jpeg":          {encoded(t, JPEG, small), JPEG, true},
		"gif":           {encoded(t, GIF, small), GIF, true},
		"webp":          {unbase64(t, tinyWebP), WebP, true},
		"bmp":           {encoded(t, BMP, small), BMP, false},
		"pdf":           {[]byte("%PDF-1.7\n"), PDF, false},
		"pdf too late":  {[]byte("\n\n%PDF-1.7\n"), "application/octet-stream", false},
		"pdf too short": {[]byte("%PDF"), "text/plain", false},
		"text":          {[]byte("hello\n"), "text/plain", false},
		"empty":         {nil, "", false},
		"a word":        {[]byte("BMW is no bitmap"), "text/plain", false},
		"gzip":          {[]byte("\x1f\x8b\x08\x00\x00"), "application/gzip", false},
	} {
		got, err := Detect(bytes.NewReader(c.data))
		if err != nil || got != c.want || got.IsImage() != c.image {
			t.Errorf("%s: %q, image %v, %v", name, got, got.IsImage(), err)
		}
	}
	if got := Type("").String(); got != "empty" {
		t.Errorf("an empty file is called %q", got)
	}
}

func TestViewSendsWhatFitsAsItIs(t *testing.T) {
	for _, typ := range []Type{PNG, JPEG, GIF} {
		data := encoded(t, typ, picture(40, 30))
		got, err := viewBytes(data)
		if err != nil || got.Type != typ || !bytes.Equal(got.Data, data) || got.Width != 40 || got.Height != 30 || got.Resized() {
			t.Errorf("%s: %+v, %v", typ, got, err)
		}
	}
	webp := unbase64(t, tinyWebP)
	if got, err := viewBytes(webp); err != nil || got.Type != WebP || !bytes.Equal(got.Data, webp) {
		t.Errorf("webp: %+v, %v", got, err)
	}
	got, err := viewBytes(encoded(t, BMP, picture(40, 30)))
	if err != nil || got.Type != PNG || got.Resized() {
		t.Errorf("bmp: %+v, %v", got, err)
	}
}

func TestViewScales(t *testing.T) {
	testlevel.NotQuick(t, "scales images of many megapixels")
	for _, c := range []struct{ w, h, wantW, wantH int }{
		{4096, 10, 2048, 5}, {10, 1536, 5, 768}, {2048, 7, 2048, 7}, {90, 800, 86, 768}, {9000, 1, 2048, 1}, {2049, 76, 2048, 76},
	} {
		for _, typ := range []Type{PNG, JPEG, GIF} {
			got, err := viewBytes(encoded(t, typ, picture(c.w, c.h)))
			if err != nil {
				t.Fatal(err)
			}
			want := map[Type]Type{PNG: PNG, JPEG: JPEG, GIF: PNG}[typ]
			if c.w == c.wantW && c.h == c.wantH {
				want = typ
			}
			m, _, err := image.Decode(bytes.NewReader(got.Data))
			if err != nil || got.Type != want || m.Bounds().Dx() != c.wantW || m.Bounds().Dy() != c.wantH || got.SentWidth != c.wantW || got.SentHeight != c.wantH {
				t.Errorf("%s %dx%d: %s %dx%d, want %s %dx%d (%v)", typ, c.w, c.h, got.Type, got.SentWidth, got.SentHeight, want, c.wantW, c.wantH, err)
			}
		}
	}
}

// withOrientation puts an EXIF segment behind the start of a JPEG.
func withOrientation(jpegData []byte, order binary.AppendByteOrder, o uint16) []byte {
	mark := "MM\x00*"
	if order == binary.AppendByteOrder(binary.LittleEndian) {
		mark = "II*\x00"
	}
	tiff := order.AppendUint32([]byte(mark), 8)
	tiff = order.AppendUint16(tiff, 1)
	tiff = order.AppendUint16(order.AppendUint16(tiff, 0x0112), 3)
	tiff = order.AppendUint16(order.AppendUint16(order.AppendUint32(tiff, 1), o), 0)
	segment := append([]byte("Exif\x00\x00"), tiff...)
	out := append([]byte{}, jpegData[:2]...)
	out = binary.BigEndian.AppendUint16(append(out, 0xFF, 0xE1), uint16(len(segment)+2))
	return append(append(out, segment...), jpegData[2:]...)
}

// TestOrientation holds every EXIF orientation against where the corner that is
// red in the file must end up.
func TestOrientation(t *testing.T) {
	source := encoded(t, JPEG, picture(2400, 20))
	corners := map[uint16][2]int{1: {0, 0}, 2: {1, 0}, 3: {1, 1}, 4: {0, 1}, 5: {0, 0}, 6: {1, 0}, 7: {1, 1}, 8: {0, 1}}
	for o, corner := range corners {
		for _, order := range []binary.AppendByteOrder{binary.BigEndian, binary.LittleEndian} {
			got, err := viewBytes(withOrientation(source, order, o))
			if err != nil {
				t.Fatal(err)
			}
			m, err := jpeg.Decode(bytes.NewReader(got.Data))
			if err != nil {
				t.Fatal(err)
			}
			if upright := o < 5; upright != (got.Width == 2400) {
				t.Errorf("orientation %d: %dx%d", o, got.Width, got.Height)
			}
			x, y := corner[0]*(m.Bounds().Dx()-1), corner[1]*(m.Bounds().Dy()-1)
			if r, g, _, _ := m.At(x, y).RGBA(); r>>8 < 200 || g>>8 > 60 {
				t.Errorf("orientation %d: the corner %v is %v", o, corner, m.At(x, y))
			}
		}
	}
}

// bomb is a PNG of a few bytes that claims a size.
func bomb(w, h uint32) []byte {
	ihdr := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte("IHDR"), w), h)
	ihdr = append(ihdr, 8, 6, 0, 0, 0)
	out := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), ihdr...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(ihdr))
}

func TestViewRefuses(t *testing.T) {
	good := encoded(t, PNG, picture(50, 50))
	unsupported, tooLarge := &UnsupportedError{}, &TooLargeError{}
	for name, c := range map[string]struct {
		data []byte
		want any
	}{
		"bomb":              {bomb(100_000, 100_000), &tooLarge},
		"truncated":         {good[:len(good)/2], &unsupported},
		"claims a little":   {bomb(10, 10), &unsupported},
		"text":              {[]byte("hello"), &unsupported},
		"empty":             {nil, &unsupported},
		"pdf":               {[]byte("%PDF-1.7"), &unsupported},
		"too large a file":  {append(good, make([]byte, MaxFileBytes)...), &tooLarge},
		"text is not large": {bytes.Repeat([]byte("x"), MaxFileBytes+1), &unsupported},
	} {
		if got, err := viewBytes(c.data); err == nil || !errors.As(err, c.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

const animationBit = 1 << 1

// extendedWebP is the header of an extended WebP with the given flags and canvas.
func extendedWebP(flags byte, w, h int) []byte {
	out := append([]byte("RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00"), flags, 0, 0, 0)
	for _, n := range []int{w - 1, h - 1} {
		out = append(out, byte(n), byte(n>>8), byte(n>>16))
	}
	return out
}

func TestWebPAnimation(t *testing.T) {
	got, err := viewBytes(extendedWebP(animationBit, 300, 200))
	if err != nil || got.Width != 300 || got.Height != 200 || got.Type != WebP {
		t.Errorf("%+v, %v", got, err)
	}
	var unsupported *UnsupportedError
	if _, err := viewBytes(extendedWebP(animationBit, 3000, 200)); !errors.As(err, &unsupported) {
		t.Error("an animation without a frame cannot be scaled:", err)
	}
	// One frame, the picture of tinyWebP in the corner of a canvas that is too wide.
	still := unbase64(t, tinyWebP)[12:]
	frame := append([]byte{1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, still...)
	wide := appendChunk(extendedWebP(animationBit, 3000, 200), "ANMF", frame)
	if got, err = viewBytes(wide); err != nil || got.Type != PNG || got.Width != 3000 || got.SentWidth != 2048 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := viewBytes(extendedWebP(0, 300, 200)); !errors.As(err, &unsupported) {
		t.Error("a header alone is no image:", err)
	}
	var large *TooLargeError
	if _, err := viewBytes(extendedWebP(0, 1<<24, 1<<24)); !errors.As(err, &large) {
		t.Error("a canvas of 2^48 pixels:", err)
	}
}

func TestPartialGIFFrame(t *testing.T) {
	frame := image.NewPaletted(image.Rect(10, 10, 20, 20), color.Palette{color.Black, color.White})
	var b bytes.Buffer
	err := gif.EncodeAll(&b, &gif.GIF{Image: []*image.Paletted{frame}, Delay: []int{0}, Config: image.Config{Width: 3000, Height: 100, ColorModel: frame.Palette}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := viewBytes(b.Bytes())
	if err != nil || got.Width != 3000 || got.SentWidth != 2048 || got.Type != PNG {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestShrink sends noise, which no PNG makes small, as a JPEG.
func TestShrink(t *testing.T) {
	noise := image.NewNRGBA(image.Rect(0, 0, 2040, 760))
	random := rand.New(rand.NewPCG(1, 2))
	for i := range noise.Pix {
		noise.Pix[i] = byte(random.Uint32())
	}
	got, err := viewBytes(encoded(t, PNG, noise))
	if err != nil || got.Type != JPEG || len(got.Data) > maxSentBytes {
		t.Fatalf("%v, %v", got, err)
	}
	if _, err := jpeg.Decode(bytes.NewReader(got.Data)); err != nil {
		t.Error(err)
	}
}

// FuzzView: no file makes it panic, and what it returns is an image of the size it says.
func FuzzView(f *testing.F) {
	small := picture(3, 2)
	for _, typ := range []Type{PNG, JPEG, GIF, BMP} {
		f.Add(encoded(f, typ, small))
	}
	f.Add(unbase64(f, tinyWebP))
	f.Add(extendedWebP(animationBit, 30, 20))
	f.Add(withOrientation(encoded(f, JPEG, small), binary.BigEndian, 6))
	f.Add(bomb(9000, 9000))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := viewBytes(data)
		if err != nil || got.Type == WebP {
			return
		}
		decoders := map[Type]func([]byte) (image.Config, error){
			PNG:  func(b []byte) (image.Config, error) { return png.DecodeConfig(bytes.NewReader(b)) },
			JPEG: func(b []byte) (image.Config, error) { return jpeg.DecodeConfig(bytes.NewReader(b)) },
			GIF:  func(b []byte) (image.Config, error) { return gif.DecodeConfig(bytes.NewReader(b)) },
		}
		config, err := decoders[got.Type](got.Data)
		if err != nil || got.SentWidth > MaxWidth || got.SentHeight > MaxHeight {
			t.Errorf("%s %dx%d: %v", got.Type, got.SentWidth, got.SentHeight, err)
		}
		if got.Resized() && (config.Width != got.SentWidth || config.Height != got.SentHeight) {
			t.Errorf("says %dx%d, is %dx%d", got.SentWidth, got.SentHeight, config.Width, config.Height)
		}
	})
}

func BenchmarkView(b *testing.B) {
	data := encoded(b, JPEG, picture(4000, 3000))
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := viewBytes(data); err != nil {
			b.Fatal(err)
		}
	}
}
