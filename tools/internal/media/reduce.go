package media

import (
	"image"

	"golang.org/x/image/draw"
)

const (
	reduceFrom = 4 << 20 // pixels: below, scaling in one step costs little memory
	tilePixels = 1 << 20 // are converted at a time
)

// reduce averages blocks of a large picture, so that it is less than twice as wide
// and high as what it will be scaled to: scaling takes 32 bytes for each of its rows
// and each column that comes out.
func reduce(picture image.Image, width, height int) image.Image {
	b := picture.Bounds()
	bw, bh := max(1, b.Dx()/width), max(1, b.Dy()/height)
	if b.Dx()*b.Dy() < reduceFrom || bw*bh == 1 {
		return picture
	}
	out := image.NewRGBA(image.Rect(0, 0, (b.Dx()+bw-1)/bw, (b.Dy()+bh-1)/bh))
	across := max(1, tilePixels/(bw*bh)) // blocks in a tile
	tile := image.NewRGBA(image.Rect(0, 0, min(across*bw, b.Dx()), bh))
	for y := range out.Rect.Dy() {
		for x := 0; x < out.Rect.Dx(); x += across {
			part := image.Rect(x*bw, y*bh, min((x+across)*bw, b.Dx()), min((y+1)*bh, b.Dy()))
			here := image.Rect(0, 0, part.Dx(), part.Dy())
			draw.Draw(tile, here, picture, b.Min.Add(part.Min), draw.Src)
			averages(out.Pix[out.PixOffset(x, y):], tile, here, bw)
		}
	}
	return out
}

// averages writes one pixel for each block, bw wide, of a part of the tile.
func averages(to []byte, tile *image.RGBA, part image.Rectangle, bw int) {
	for x := 0; x < part.Max.X; x += bw {
		var sum [4]uint32
		end := min(x+bw, part.Max.X)
		for y := range part.Max.Y {
			row := tile.Pix[tile.PixOffset(x, y) : tile.PixOffset(end-1, y)+4]
			for i := 0; i < len(row); i += 4 {
				sum[0] += uint32(row[i])
				sum[1] += uint32(row[i+1])
				sum[2] += uint32(row[i+2])
				sum[3] += uint32(row[i+3])
			}
		}
		n := uint32((end - x) * part.Max.Y)
		for c := range sum {
			to[x/bw*4+c] = byte((sum[c] + n/2) / n)
		}
	}
}
