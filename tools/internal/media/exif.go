package media

import (
	"bytes"
	"encoding/binary"
	"image"

	"golang.org/x/image/draw"
)

// An orientation is how a camera was held: EXIF tag 0x0112, 1 (upright) to 8.
type orientation int

// swapsSides tells whether width and height change places.
func (o orientation) swapsSides() bool { return o >= 5 }

// source returns where in a picture of w x h the upright pixel (x, y) is.
func (o orientation) source(x, y, w, h int) (int, int) {
	switch o {
	case 2:
		return w - 1 - x, y
	case 3:
		return w - 1 - x, h - 1 - y
	case 4:
		return x, h - 1 - y
	case 5:
		return y, x
	case 6:
		return y, h - 1 - x
	case 7:
		return w - 1 - y, h - 1 - x
	case 8:
		return w - 1 - y, x
	}
	return x, y
}

// apply turns a picture upright.
func (o orientation) apply(picture image.Image) image.Image {
	if o <= 1 || o > 8 {
		return picture
	}
	b := picture.Bounds()
	src := image.NewRGBA(image.Rect(0, 0, b.Dx(), b.Dy()))
	draw.Draw(src, src.Bounds(), picture, b.Min, draw.Src)
	w, h := b.Dx(), b.Dy()
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	if o.swapsSides() {
		out = image.NewRGBA(image.Rect(0, 0, h, w))
	}
	for y := range out.Rect.Dy() {
		for x := range out.Rect.Dx() {
			sx, sy := o.source(x, y, w, h)
			copy(out.Pix[out.PixOffset(x, y):][:4], src.Pix[src.PixOffset(sx, sy):][:4])
		}
	}
	return out
}

// exifOrientation finds the orientation in a JPEG, 1 where it says none.
func exifOrientation(data []byte) orientation {
	const startOfScan, app1 = 0xDA, 0xE1
	for at := 2; at+4 <= len(data) && data[at] == 0xFF; {
		marker, length := data[at+1], int(binary.BigEndian.Uint16(data[at+2:]))
		if marker == startOfScan || length < 2 || at+2+length > len(data) {
			break
		}
		segment := data[at+4 : at+2+length]
		if tiff, ok := bytes.CutPrefix(segment, []byte("Exif\x00\x00")); ok && marker == app1 {
			return tiffOrientation(tiff)
		}
		at += 2 + length
	}
	return 1
}

// tiffOrientation reads the tag from the first directory of a TIFF structure.
func tiffOrientation(tiff []byte) orientation {
	var order binary.ByteOrder = binary.BigEndian
	if len(tiff) < 8 {
		return 1
	}
	if string(tiff[:2]) == "II" {
		order = binary.LittleEndian
	}
	const tag, short, entrySize = 0x0112, 3, 12
	dir := int64(order.Uint32(tiff[4:]))
	if dir+2 > int64(len(tiff)) {
		return 1
	}
	count := int(order.Uint16(tiff[dir:]))
	for i := range count {
		at := dir + 2 + int64(i)*entrySize
		if at+entrySize > int64(len(tiff)) {
			break
		}
		entry := tiff[at:]
		if order.Uint16(entry) == tag && order.Uint16(entry[2:]) == short {
			if o := orientation(order.Uint16(entry[8:])); o >= 1 && o <= 8 {
				return o
			}
			break
		}
	}
	return 1
}
