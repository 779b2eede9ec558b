package media

// A WebP file of the extended format begins RIFF, size, WEBP, VP8X, chunk size,
// then flags and the size of the canvas: https://developers.google.com/speed/webp/docs/riff_container
const (
	webpFlags     = 20
	webpCanvas    = 24
	webpExtended  = 30 // bytes up to the end of the canvas
	webpAnimation = 1 << 1
)

func isExtended(data []byte) bool {
	return len(data) >= webpExtended && string(data[:4]) == "RIFF" && string(data[8:16]) == "WEBPVP8X"
}

func animated(data []byte) bool {
	return isExtended(data) && data[webpFlags]&webpAnimation != 0
}

// canvas returns the size of an extended WebP: two numbers of 24 bits, less one.
func canvas(data []byte) (width, height int) {
	number := func(b []byte) int { return (int(b[0]) | int(b[1])<<8 | int(b[2])<<16) + 1 }
	return number(data[webpCanvas:]), number(data[webpCanvas+3:])
}
