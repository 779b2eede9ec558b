package media

import (
	"encoding/binary"
	"image/color"
)

// MaxDecodedBytes bounds the memory that decoding one picture takes: a small file
// can hold a large one.
const MaxDecodedBytes = 256 << 20

// decodedBytes is about what decoding takes: the picture, and what the decoder
// holds besides it.
func decodedBytes(typ Type, data []byte, model color.Model, width, height int) float64 {
	pixels := float64(width) * float64(height)
	switch typ {
	case JPEG:
		progressive, samples := jpegFrame(data)
		if progressive { // every coefficient is kept, in four bytes
			return pixels * samples * 5
		}
		return pixels * samples
	case PNG:
		const interlace = 28 // where the header says so; the passes are decoded beside the picture
		if len(data) > interlace && data[interlace] != 0 {
			return pixels * 2 * pixelBytes(model)
		}
		return pixels * pixelBytes(model)
	case WebP:
		return pixels * 8 // the picture, and as much again for the transforms
	case GIF:
		return pixels * 5 // indices, and the screen
	}
	return pixels * 4
}

func pixelBytes(model color.Model) float64 {
	switch model {
	case color.RGBA64Model, color.NRGBA64Model:
		return 8
	case color.Gray16Model:
		return 2
	case color.GrayModel:
		return 1
	}
	if _, ok := model.(color.Palette); ok {
		return 1
	}
	return 4
}

// jpegFrame reads the frame header of a JPEG: whether it is progressive, and how
// many samples it has for each pixel.
func jpegFrame(data []byte) (progressive bool, samples float64) {
	for at := 2; at+4 <= len(data); {
		if data[at] != 0xFF {
			at++ // what decoders pass over
			continue
		}
		marker, length := data[at+1], int(binary.BigEndian.Uint16(data[at+2:]))
		if marker == 0xFF || marker == 0 || marker >= 0xD0 && marker <= 0xD8 {
			at++
			continue
		}
		if marker >= 0xC0 && marker <= 0xC2 {
			if segment := data[at+4:]; len(segment) >= 6 {
				return marker == 0xC2, sampling(segment[5], segment[6:])
			}
			break
		}
		at += 2 + length
	}
	return true, 4 // the worst, where it does not say
}

// sampling is how many samples a pixel has, of n components with their factors.
func sampling(n byte, components []byte) float64 {
	sum, widest, highest := 0, 1, 1
	for i := 0; i < int(n) && 3*i+1 < len(components); i++ {
		h, v := int(components[3*i+1]>>4), int(components[3*i+1]&15)
		sum, widest, highest = sum+h*v, max(widest, h), max(highest, v)
	}
	return float64(sum) / float64(widest*highest)
}
