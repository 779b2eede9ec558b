package media

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"testing"
)

// TestDecodedBytes refuses by the header what would take too much when decoded.
func TestDecodedBytes(t *testing.T) {
	with := func(data []byte, at int, b byte) []byte {
		out := bytes.Clone(data)
		out[at] = b
		binary.BigEndian.PutUint32(out[29:], crc32.ChecksumIEEE(out[12:29]))
		return out
	}
	const depth, interlace = 24, 28
	progressive := func(w, h uint16) []byte {
		var b bytes.Buffer
		if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 8, 8)), nil); err != nil {
			t.Fatal(err)
		}
		i := bytes.Index(b.Bytes(), []byte{0xFF, 0xC0})
		data := b.Bytes()
		data[i+1] = 0xC2
		binary.BigEndian.PutUint16(data[i+5:], h)
		binary.BigEndian.PutUint16(data[i+7:], w)
		return data
	}
	liar := append(extendedWebP(0, 10, 10), "VP8L\x05\x00\x00\x00\x2f\xff\xff\xff\x0f\x00"...)
	var large *TooLargeError
	var unsupported *UnsupportedError
	for name, c := range map[string]struct {
		data []byte
		want any
	}{
		"49 million pixels, 8 bit":                {bomb(7000, 7000), &unsupported}, // not large, but cut off
		"49 million pixels, 16 bit":               {with(bomb(7000, 7000), depth, 16), &large},
		"49 million pixels, interlaced":           {with(bomb(7000, 7000), interlace, 1), &large},
		"49 million pixels, progressive":          {progressive(7000, 7100), &unsupported}, // grey: one sample a pixel
		"55 million pixels, progressive":          {progressive(8000, 7000), &large},
		"a WebP that is larger than its header":   {liar, &unsupported},
		"a WebP of 40 million pixels by its size": {extendedWebP(0, 8000, 5000), &large},
	} {
		if got, err := viewBytes(c.data); err == nil || !errors.As(err, c.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestReduce: averaging keeps colours where they are, also of odd sizes.
func TestReduce(t *testing.T) {
	m := image.NewNRGBA(image.Rect(5, 7, 5+2511, 7+1801))
	for y := m.Rect.Min.Y; y < m.Rect.Max.Y; y++ {
		for x := m.Rect.Min.X; x < m.Rect.Max.X; x++ {
			c := color.NRGBA{R: 200, A: 255}
			if x >= m.Rect.Min.X+m.Rect.Dx()/2 {
				c = color.NRGBA{B: 100, A: 255}
			}
			m.SetNRGBA(x, y, c)
		}
	}
	got := reduce(m, 500, 400)
	if b := got.Bounds(); b.Dx() != 503 || b.Dy() != 451 {
		t.Fatal(b)
	}
	for x, want := range map[int]color.RGBA{0: {R: 200, A: 255}, 250: {R: 200, A: 255}, 252: {B: 100, A: 255}, 502: {B: 100, A: 255}} {
		for _, y := range []int{0, 225, 450} {
			if c := got.At(x, y); c != want {
				t.Errorf("%d,%d: %v, want %v", x, y, c, want)
			}
		}
	}
	if reduce(m, 2000, 1500) != image.Image(m) {
		t.Error("a picture that is not twice as large was changed")
	}
	if err := png.Encode(&bytes.Buffer{}, got); err != nil {
		t.Error(err)
	}
}
