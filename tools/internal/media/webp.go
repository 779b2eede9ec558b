package media

import (
	"encoding/binary"
	"errors"
)

// A webpFile is what the extended header of a WebP says.
type webpFile struct {
	animated      bool
	alpha         bool
	width, height int
	chunks        []byte // behind the header
}

// parseWebP reads the extended header of a WebP; ok is false for a file without
// one, which is a single picture.
func parseWebP(data []byte) (w webpFile, ok bool) {
	const (
		animationBit = 1 << 1
		alphaBit     = 1 << 4
	)
	if len(data) < 12 || string(data[:4]) != "RIFF" || string(data[8:12]) != "WEBP" {
		return w, false
	}
	name, body, rest, err := nextChunk(data[12:])
	if err != nil || name != "VP8X" || len(body) < 10 {
		return w, false
	}
	return webpFile{
		animated: body[0]&animationBit != 0,
		alpha:    body[0]&alphaBit != 0,
		width:    uint24(body[4:]) + 1,
		height:   uint24(body[7:]) + 1,
		chunks:   rest,
	}, true
}

// A webpFrame is a picture of an animation and where on the canvas it stands.
type webpFrame struct {
	x, y          int
	width, height int
	still         []byte // a WebP of the frame alone
}

var errNoFrame = errors.New("the animation has no whole first frame")

// firstFrame returns the first frame of an animation. It lies on the canvas.
func (w webpFile) firstFrame() (f webpFrame, err error) {
	const headerBytes = 16
	for rest := w.chunks; len(rest) > 0; {
		var name string
		var body []byte
		if name, body, rest, err = nextChunk(rest); err != nil {
			return f, err
		}
		if name != "ANMF" {
			continue
		}
		if len(body) < headerBytes {
			break
		}
		f.x, f.y = 2*uint24(body), 2*uint24(body[3:])
		f.width, f.height = uint24(body[6:])+1, uint24(body[9:])+1
		if f.x+f.width > w.width || f.y+f.height > w.height {
			return f, errors.New("the first frame leaves the canvas")
		}
		if err = checkPicture(body[headerBytes:], f.width, f.height); err != nil {
			return f, err
		}
		f.still, err = stillWebP(body[headerBytes:], f.width, f.height)
		return f, err
	}
	return f, errNoFrame
}

// checkPicture holds the size that the picture itself claims against that of the
// header around it, by which it was judged: what is decoded is the picture.
func checkPicture(chunks []byte, width, height int) error {
	for len(chunks) > 0 {
		name, body, rest, err := nextChunk(chunks)
		if err != nil {
			return err
		}
		var w, h int
		switch {
		case name == "VP8 " && len(body) >= 10:
			w, h = int(binary.LittleEndian.Uint16(body[6:])&0x3FFF), int(binary.LittleEndian.Uint16(body[8:])&0x3FFF)
		case name == "VP8L" && len(body) >= 5:
			bits := binary.LittleEndian.Uint32(body[1:])
			w, h = int(bits&0x3FFF)+1, int(bits>>14&0x3FFF)+1
		default:
			chunks = rest
			continue
		}
		if w != width || h != height {
			return errors.New("the picture has another size than its header")
		}
		return nil
	}
	return errNoFrame
}

// stillWebP makes a WebP of its own of the chunks of a frame.
func stillWebP(frame []byte, width, height int) ([]byte, error) {
	header := make([]byte, 10)
	putUint24(header[4:], width-1)
	putUint24(header[7:], height-1)
	var picture []byte
	for len(frame) > 0 && picture == nil {
		name, body, rest, err := nextChunk(frame)
		if err != nil {
			return nil, err
		}
		switch name {
		case "ALPH":
			header[0] = 1 << 4
			picture, err = stillPicture(frame, len(frame)-len(rest), rest)
			if err != nil {
				return nil, err
			}
		case "VP8 ", "VP8L":
			picture = appendChunk(nil, name, body)
		}
		frame = rest
	}
	if picture == nil {
		return nil, errNoFrame
	}
	file := append([]byte("RIFF\x00\x00\x00\x00WEBP"), appendChunk(nil, "VP8X", header)...)
	file = append(file, picture...)
	binary.LittleEndian.PutUint32(file[4:], uint32(len(file)-8))
	return file, nil
}

// stillPicture joins an alpha chunk, the first n bytes of frame, and the
// picture that follows it.
func stillPicture(frame []byte, n int, rest []byte) ([]byte, error) {
	name, body, _, err := nextChunk(rest)
	if err != nil || name != "VP8 " {
		return nil, errNoFrame
	}
	return appendChunk(append([]byte(nil), frame[:n]...), name, body), nil
}

// nextChunk splits the first chunk off data.
func nextChunk(data []byte) (name string, body, rest []byte, err error) {
	if len(data) < 8 {
		return "", nil, nil, errors.New("a chunk is cut")
	}
	size := uint64(binary.LittleEndian.Uint32(data[4:]))
	if size > uint64(len(data)-8) {
		return "", nil, nil, errors.New("a chunk is cut")
	}
	end := 8 + int(size)
	return string(data[:4]), data[8:end], data[min(end+end%2, len(data)):], nil
}

func appendChunk(to []byte, name string, body []byte) []byte {
	to = append(to, name...)
	to = binary.LittleEndian.AppendUint32(to, uint32(len(body)))
	to = append(to, body...)
	if len(body)%2 == 1 {
		to = append(to, 0)
	}
	return to
}

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

func putUint24(b []byte, v int) { b[0], b[1], b[2] = byte(v), byte(v>>8), byte(v>>16) }
